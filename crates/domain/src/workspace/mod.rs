//! Workspaces: the tenants.

mod bootstrap_instance;
mod create_workspace;
mod errors;
mod model;
mod ports;

pub use bootstrap_instance::*;
pub use create_workspace::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
