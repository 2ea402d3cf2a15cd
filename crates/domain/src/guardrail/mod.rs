//! Guardrails: what a key may use.

mod assign_keys_to_guardrail;
mod create_guardrail;
mod errors;
mod model;
mod ports;

pub use assign_keys_to_guardrail::*;
pub use create_guardrail::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
