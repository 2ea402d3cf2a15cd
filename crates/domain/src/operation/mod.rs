//! Operation of an installation: its audit log, and pauses of providers.

mod list_audit_entries;
mod pause_provider;

pub use list_audit_entries::*;
pub use pause_provider::*;
