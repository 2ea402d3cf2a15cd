//! The audit log: who changed what, in a chain that shows when it was tampered with.

mod chain;
mod faults;
mod managed_rows;
mod model;
mod ports;
mod refusals;
mod stored_entry;
mod verify_audit_log;

pub use faults::*;
pub use managed_rows::{RowHasher, RowSum, RowSums};
pub use model::*;
pub use ports::*;
pub use refusals::*;
pub use stored_entry::*;
pub use verify_audit_log::*;
