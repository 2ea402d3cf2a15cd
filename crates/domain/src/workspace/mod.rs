//! Workspaces: the tenants.

mod changes;
mod choose_workspace;
mod contents;
mod create_workspace;
mod credit;
mod errors;
mod manage_workspaces;
mod model;
mod ports;
mod read_workspaces;
mod slug;

pub use changes::*;
pub use choose_workspace::*;
pub use contents::*;
pub use create_workspace::*;
pub use credit::*;
pub use errors::*;
pub use manage_workspaces::*;
pub use model::*;
pub use ports::*;
pub use read_workspaces::*;
pub use slug::*;
