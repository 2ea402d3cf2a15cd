//! The audit log: a tamper-evident hash chain of all changes.

mod denied_changes;
mod managed_rows;
mod model;
mod ports;
mod stored_entry;
mod verification;
mod verify_audit_log;

pub use denied_changes::*;
pub use managed_rows::{RowHasher, RowSum, RowSums};
pub use model::*;
pub use ports::*;
pub use stored_entry::*;
pub use verification::*;
pub use verify_audit_log::*;
