//! Routing: candidate endpoints, their order and health, and the failures of attempts.

mod candidates;
mod capability;
mod endpoint;
mod failure;
mod failure_cause;
mod health;
mod list_model_endpoints;
mod list_providers;
mod nearest_provider;
mod preferences;
mod wire;

pub use candidates::*;
pub use capability::*;
pub use endpoint::*;
pub use failure::*;
pub use failure_cause::*;
pub use health::*;
pub use list_model_endpoints::*;
pub use list_providers::*;
pub use nearest_provider::*;
pub use preferences::*;
pub use wire::*;
