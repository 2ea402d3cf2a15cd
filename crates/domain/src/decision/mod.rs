//! Decisions: questions about a state, answered by a model.

mod draft;
mod errors;
mod explain_guardrail;
mod get_generation;
mod meter_tokens;
mod model;
mod ports;
mod settings;
mod submit;
mod test_provider;

pub use draft::*;
pub use errors::*;
pub use explain_guardrail::*;
pub use get_generation::*;
pub use meter_tokens::*;
pub use model::*;
pub use ports::*;
pub use settings::*;
pub use submit::*;
pub use test_provider::*;
