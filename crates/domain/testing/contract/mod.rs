//! A list of cases per port. The fakes of this crate and the real adapters run the same lists, so that a use case that
//! works with a fake also works with the adapter.
//!
//! Each case is a separate test of each implementation: the suite's macro expands the list to tests, and each test asks
//! a factory for an empty store. Suites need no own runtime: they run in that of the adapter.

#[macro_use]
mod suite;

mod assignments;
mod audit;
mod blobs;
mod broadcasts;
mod budget_store;
mod catalogues;
mod changes;
mod decision_providers;
mod destinations;
mod documents;
mod evidence;
mod grants;
mod guardrail_changes;
mod guardrail_policies;
mod guardrails;
mod journaled_ledger;
mod key_queries;
mod key_secrets;
mod keys;
mod last_key;
mod ledger;
mod media_types;
mod message_senders;
mod models;
mod outbox;
mod pauses;
mod presets;
mod rate_limiters;
mod rejections;
mod repetitions;
mod samples;
mod stores;
mod traces;
mod usage;
mod usage_journal;
mod workers;
mod workspace_deletion;
mod workspaces;

pub use assignments::guardrail_assignments_cases;
pub use audit::audit_log_cases;
pub use blobs::blob_store_cases;
pub use broadcasts::{Broadcasts, broadcast_cases};
pub use budget_store::{budget_store_cases, ledger_reports_audit_cases, ledger_reports_cases, usage_script};
pub use catalogues::{CatalogueSource, Catalogues, catalogue_cases};
pub use changes::change_feed_cases;
pub use decision_providers::{
    PROVIDER_TEXT, Providers, RemoteProvider, RemoteProviders, RemoteReaction, decision_provider_cases,
    remote_provider_cases,
};
pub use destinations::destination_repository_cases;
pub use documents::document_repository_cases;
pub use evidence::evidence_repository_cases;
pub use grants::key_grants_cases;
pub use guardrail_policies::{Policies, PolicySource, guardrail_policies_cases};
pub use guardrails::guardrail_repository_cases;
pub use journaled_ledger::{
    LedgerMachine, StoreBackup, excess_script, hold_request, insert_payer, ledger_machine_cases, limit_payer, payer,
    usage_record,
};
pub use keys::api_key_repository_cases;
pub use last_key::last_key_cases;
pub use ledger::{LedgerStep, journaled_ledger_cases, ledger_audit_cases, ledger_cases, ledger_script};
pub use media_types::media_types_cases;
pub use message_senders::{RECEIVER_TEXT, Receiver, ReceiverReaction, Senders, message_sender_cases};
pub use models::model_repository_cases;
pub use outbox::outbox_cases;
pub use pauses::provider_pauses_cases;
pub use presets::preset_repository_cases;
pub use rate_limiters::{RateLimiters, rate_limiter_cases};
pub use rejections::rejection_store_cases;
pub use repetitions::idempotent_requests_cases;
pub use samples::{inference_key, key_id};
pub use stores::{Blobs, Stores};
pub use traces::trace_encoder_cases;
pub use usage::usage_repository_cases;
pub use usage_journal::{JournalMachine, Journals, usage_journal_cases};
pub use workers::{WorkerPools, inline_workers, worker_pool_cases, workers_cases};
pub use workspaces::workspace_repository_cases;
