//! The tables, as the migrations make them.

pub(crate) mod api_keys;
pub(crate) mod change_feed;
pub(crate) mod documents;
pub(crate) mod guardrails;
pub(crate) mod idempotency_claims;
pub(crate) mod models;
pub(crate) mod usage_records;
pub(crate) mod workspaces;
