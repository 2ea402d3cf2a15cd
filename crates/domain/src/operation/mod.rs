//! Operation of an installation: its audit log, its status, pauses of providers, and files that are
//! written into containers.

mod list_audit_entries;
mod pause_provider;
mod put_container_file;
mod read_status;

pub use list_audit_entries::*;
pub use pause_provider::*;
pub use put_container_file::*;
pub use read_status::*;
