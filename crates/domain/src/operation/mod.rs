//! Operation of an installation: its audit log.

mod list_audit_entries;

pub use list_audit_entries::*;
