//! One file per endpoint: request, error mapping, handler, view, tests.

pub(crate) mod assign_keys_to_guardrail;
pub(crate) mod count_models;
pub(crate) mod destinations;
pub(crate) mod docs;
pub(crate) mod get_generation;
pub(crate) mod get_model;
pub(crate) mod guardrails;
pub(crate) mod health;
pub(crate) mod list_model_endpoints;
pub(crate) mod list_models;
pub(crate) mod list_providers;
pub(crate) mod promote_container_file;
pub(crate) mod rendered_catalogue;
pub(crate) mod root;
pub(crate) mod rotate_api_key;
pub(crate) mod submit_decision;
