//! Guardrails: rules for the models, the spend and the content of requests.

mod assign_keys_to_guardrail;
mod change_guardrails;
mod draft;
mod errors;
pub mod filter;
#[cfg(test)]
pub(crate) mod fixtures;
mod known_names;
mod list_permitted_models;
mod manage_guardrails;
mod model;
mod permission;
mod policy;
mod ports;
mod read_guardrails;

pub use assign_keys_to_guardrail::*;
pub use draft::*;
pub use errors::*;
pub use known_names::*;
pub use list_permitted_models::*;
pub use manage_guardrails::*;
pub use model::*;
pub use permission::Forbidden;
pub use policy::*;
pub use ports::*;
