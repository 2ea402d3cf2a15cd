//! Guardrails: what a key may use, spend and send.

mod assign_keys_to_guardrail;
mod create_guardrail;
mod errors;
pub mod filter;
mod model;
mod permission;
mod policy;
mod ports;

pub use assign_keys_to_guardrail::*;
pub use create_guardrail::*;
pub use errors::*;
pub use model::*;
pub use permission::Forbidden;
pub(crate) use permission::permits;
pub use policy::*;
pub use ports::*;
