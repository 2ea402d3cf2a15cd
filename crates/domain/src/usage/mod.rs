//! Usage records: the tokens, attempts and cost of requests.

mod errors;
mod find_record;
mod finding;
mod labels;
mod model;
mod outbox_message;
mod ports;
mod unknown_usage;

pub use errors::*;
pub use find_record::FindRecord;
pub use finding::*;
pub use labels::*;
pub use model::*;
pub use outbox_message::*;
pub use ports::*;
pub use unknown_usage::*;
