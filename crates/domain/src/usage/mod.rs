//! Usage records: the tokens, attempts and cost of requests.

mod errors;
mod find_record;
mod finding;
mod labels;
mod model;
mod outbox_message;
mod ports;
mod rejection;
mod rejection_counter;
mod rejection_ports;
mod unknown_usage;

pub use errors::*;
pub use find_record::FindRecord;
pub use finding::*;
pub use labels::*;
pub use model::*;
pub use outbox_message::*;
pub use ports::*;
pub use rejection::*;
pub use rejection_counter::RejectionCounter;
pub use rejection_ports::*;
pub use unknown_usage::*;
