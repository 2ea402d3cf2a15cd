//! For tests: an in-memory fake of every port, and one contract suite per port that the fakes and the real adapters
//! run alike.

mod catalogue;
mod join;
mod memory_assignments;
mod memory_blob_store;
mod memory_destinations;
mod memory_documents;
mod memory_guardrails;
mod memory_keys;
mod memory_ledger;
mod memory_outbox;
mod memory_store;
mod memory_usage;
mod memory_workspaces;
mod properties;
mod provider;
mod random;
mod system;

#[expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a contract suite fails by panicking, like every test"
)]
pub mod contract;

pub use catalogue::*;
pub use join::*;
pub use memory_blob_store::*;
pub use memory_store::*;
pub use properties::*;
pub use provider::*;
pub use random::*;
pub use system::*;
