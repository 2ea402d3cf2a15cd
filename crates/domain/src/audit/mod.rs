//! The audit log: who changed what, in a chain that shows when it was tampered with.

mod model;
mod ports;
mod refusals;
mod verify_audit_log;

pub use model::*;
pub use ports::*;
pub use refusals::*;
pub use verify_audit_log::*;
