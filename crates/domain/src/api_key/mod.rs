//! API keys: authentication and authorisation of callers.

mod authenticate;
mod change_api_key;
mod count_request;
mod create_api_key;
mod errors;
mod model;
mod ports;
mod reference;
mod rotate_api_key;
mod update_api_key;

pub use authenticate::*;
pub use change_api_key::*;
pub use count_request::*;
pub use create_api_key::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
pub use reference::*;
pub use rotate_api_key::*;
pub use update_api_key::*;
