//! Routing: candidate endpoints, their order and health, paused providers, and the failures of attempts.

mod candidates;
mod capability;
mod endpoint;
mod failure;
mod health;
mod list_endpoints;
mod list_providers;
mod paused;
mod preferences;
mod price_warnings;
mod wire;
mod wire_names;

pub use candidates::*;
pub use capability::*;
pub use endpoint::*;
pub use failure::*;
pub use health::*;
pub use list_endpoints::*;
pub use list_providers::*;
pub use paused::*;
pub use preferences::*;
pub use price_warnings::*;
pub use wire::*;
