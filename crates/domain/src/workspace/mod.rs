//! Workspaces: the tenants.

mod add_credit;
mod bootstrap_instance;
mod clear_credit;
mod create_workspace;
mod delete_workspace;
mod errors;
mod model;
mod ports;
mod rename_workspace;
mod set_workspace_budgets;
mod set_workspace_rates;
mod suspend_workspace;

pub use add_credit::*;
pub use bootstrap_instance::*;
pub use clear_credit::*;
pub use create_workspace::*;
pub use delete_workspace::*;
pub use errors::*;
pub use model::*;
pub use ports::*;
pub use rename_workspace::*;
pub use set_workspace_budgets::*;
pub use set_workspace_rates::*;
pub use suspend_workspace::*;
