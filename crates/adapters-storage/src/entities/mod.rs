//! The tables, as created by the migrations.

pub(crate) mod api_keys;
pub(crate) mod audit_log;
pub(crate) mod audit_state;
pub(crate) mod budget_processes;
pub(crate) mod change_feed;
pub(crate) mod changes;
pub(crate) mod destinations;
pub(crate) mod documents;
pub(crate) mod guardrail_versions;
pub(crate) mod guardrails;
pub(crate) mod idempotency_claims;
pub(crate) mod journal_entries;
pub(crate) mod models;
pub(crate) mod outbox;
pub(crate) mod record_bytes;
pub(crate) mod rejections;
pub(crate) mod spend_counters;
pub(crate) mod store_copies;
pub(crate) mod store_identity;
pub(crate) mod usage_records;
pub(crate) mod workspaces;
