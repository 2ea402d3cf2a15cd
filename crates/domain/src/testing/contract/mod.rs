//! One list of cases per port. The fakes of this crate and the real adapters run the same lists, so that a use case
//! which works over a fake works over the real thing.
//!
//! A suite takes a factory and asks it for fresh, empty stores as often as it needs. Every suite panics at the first
//! case that does not hold. Suites need no runtime of their own: they run wherever the adapter runs.

mod assignments;
mod audit;
mod blobs;
mod changes;
mod destinations;
mod documents;
mod grants;
mod guardrail_changes;
mod guardrails;
mod keys;
mod ledger;
mod models;
mod outbox;
mod samples;
mod stores;
mod usage;
mod workspaces;

pub use assignments::guardrail_assignments;
pub use audit::audit_log;
pub use blobs::blob_store;
pub use changes::change_feed;
pub use destinations::destination_repository;
pub use documents::document_repository;
pub use grants::key_grants;
pub use guardrails::guardrail_repository;
pub use keys::api_key_repository;
pub use ledger::{LedgerStep, ledger, ledger_script};
pub use models::model_repository;
pub use outbox::outbox;
pub use stores::{Blobs, Stores};
pub use usage::usage_repository;
pub use workspaces::workspace_repository;
