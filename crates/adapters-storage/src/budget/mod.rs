//! Allowances: processes draw them from limits, return them, and fold charges.

mod alerts;
mod audit;
mod counters;
mod draw;
mod fold;
mod limits;
pub(crate) mod processes;
mod pruning;
mod records;
mod store;
mod usage_sums;

pub use alerts::SeaOrmBudgetAlerts;
pub(crate) use processes::count_unended;
pub use store::{SeaOrmBudgetStore, SeaOrmLedgerReports};
