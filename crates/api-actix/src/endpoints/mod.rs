//! One file per endpoint: its route, its description, handler, error mapping, view and tests.

pub(crate) mod assign_keys_to_guardrail;
pub(crate) mod count_models;
pub(crate) mod destinations;
pub(crate) mod docs;
pub(crate) mod get_generation;
pub(crate) mod get_model;
pub(crate) mod guardrails;
pub(crate) mod list_model_endpoints;
pub(crate) mod list_models;
pub(crate) mod list_providers;
pub(crate) mod live;
pub(crate) mod promote_container_file;
pub(crate) mod ready;
pub(crate) mod retrieve_model;
pub(crate) mod root;
pub(crate) mod rotate_api_key;
pub(crate) mod submit_decision;
