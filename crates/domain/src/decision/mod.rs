//! Decisions: questions about a state, answered by a model.

mod draft;
mod errors;
mod explain_guardrail;
mod get_generation;
mod list_generations;
mod meter_tokens;
mod model;
mod ports;
mod preset_config;
mod resolve_preset;
mod settings;
mod submit;
mod sum_usage;
mod test_provider;
mod usage_reader;

pub use draft::*;
pub use errors::*;
pub use explain_guardrail::*;
pub use get_generation::*;
pub use list_generations::*;
pub use meter_tokens::*;
pub use model::*;
pub use ports::*;
pub use resolve_preset::*;
pub use settings::*;
pub use submit::*;
pub use sum_usage::*;
pub use test_provider::*;
pub use usage_reader::*;
