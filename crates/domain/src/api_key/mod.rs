//! API keys: authentication and authorisation of callers.

mod authenticate;
mod content_access;
mod count_request;
mod create_api_key;
mod errors;
mod get_own_key;
mod manage_api_keys;
mod model;
mod ports;
mod read_api_keys;
mod reference;
mod rotate_api_key;

pub use authenticate::*;
pub use content_access::*;
pub use count_request::*;
pub use create_api_key::*;
pub use errors::*;
pub use get_own_key::*;
pub use manage_api_keys::*;
pub use model::*;
pub use ports::*;
pub use read_api_keys::*;
pub use reference::*;
pub use rotate_api_key::*;
