//! Workspaces: the tenants.

mod change_workspace;
mod create_workspace;
mod credit;
mod delete_workspace;
mod errors;
mod model;
mod ports;
mod set_workspace_budgets;

pub use change_workspace::*;
pub use create_workspace::*;
pub use credit::*;
pub use delete_workspace::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
pub use set_workspace_budgets::*;
