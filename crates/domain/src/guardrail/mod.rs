//! Guardrails: rules for the models, the spend and the content of requests.

mod assign_keys_to_guardrail;
mod create_guardrail;
mod delete_guardrail;
mod draft;
mod errors;
pub mod filter;
#[cfg(test)]
pub(crate) mod fixtures;
mod get_guardrail;
mod get_guardrail_version;
mod known_names;
mod list_assigned_keys;
mod list_guardrail_versions;
mod list_guardrails;
mod management;
mod model;
mod permission;
mod policy;
mod ports;
mod remove_keys_from_guardrail;
mod restore_guardrail_version;
mod set_default_guardrail;
mod update_guardrail;

pub use assign_keys_to_guardrail::*;
pub use create_guardrail::*;
pub use delete_guardrail::*;
pub use draft::*;
pub use errors::*;
pub use get_guardrail::*;
pub use get_guardrail_version::*;
pub use known_names::*;
pub use list_assigned_keys::*;
pub use list_guardrail_versions::*;
pub use list_guardrails::*;
pub use management::*;
pub use model::*;
pub use permission::Forbidden;
pub use policy::*;
pub use ports::*;
pub use remove_keys_from_guardrail::*;
pub use restore_guardrail_version::*;
pub use set_default_guardrail::*;
pub use update_guardrail::*;
