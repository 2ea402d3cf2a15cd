//! API keys: who calls, and what they may do.

mod authenticate;
mod create_api_key;
mod errors;
mod model;
mod ports;
mod secret;

pub use authenticate::*;
pub use create_api_key::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
pub use secret::*;
