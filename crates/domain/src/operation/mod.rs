//! Operation of an installation: its audit log, its status, and pauses of providers.

mod list_audit_entries;
mod pause_provider;
mod read_status;

pub use list_audit_entries::*;
pub use pause_provider::*;
pub use read_status::*;
