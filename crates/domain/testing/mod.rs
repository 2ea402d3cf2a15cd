//! Test support: an in-memory fake of every port, and a contract suite per port for the fakes and the real adapters.

mod catalogue;
mod decision_ports;
mod event_count;
mod faulty_budget_store;
mod join;
mod memory_alerts;
mod memory_audit;
mod memory_blob_store;
mod memory_budget;
mod memory_changes;
mod memory_destinations;
mod memory_documents;
mod memory_evidence;
mod memory_guardrails;
mod memory_journal;
mod memory_keys;
mod memory_ledger;
mod memory_message_sender;
mod memory_models;
mod memory_outbox;
mod memory_pauses;
mod memory_policies;
mod memory_presets;
mod memory_provider;
mod memory_rate_limiter;
mod memory_rejections;
mod memory_repetitions;
mod memory_reports;
mod memory_state;
mod memory_store;
mod memory_usage;
mod memory_workspaces;
mod plain_message_encoder;
mod prompt_ledger;
mod properties;
mod provider;
mod random;
mod system;
mod workspace_changes;

#[expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a contract suite fails by panicking, like every test"
)]
pub mod contract;

pub use catalogue::*;
pub use decision_ports::*;
pub use event_count::*;
pub use faulty_budget_store::*;
pub use join::*;
pub use memory_blob_store::*;
pub use memory_guardrails::{assign_keys, remove_keys};
pub use memory_journal::*;
pub use memory_keys::{delete_key, set_disabled};
pub use memory_message_sender::*;
pub use memory_policies::*;
pub use memory_provider::*;
pub use memory_rate_limiter::*;
pub use memory_store::*;
pub use plain_message_encoder::*;
pub use prompt_ledger::*;
pub use properties::*;
pub use provider::*;
pub use random::*;
pub use system::*;
pub use workspace_changes::*;
