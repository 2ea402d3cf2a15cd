//! Allowances: processes draw them from limits, return them, and fold charges.

mod alerts;
mod audit;
mod charged_record;
mod copied_rows;
mod counters;
mod draw;
mod fold;
mod limits;
pub(crate) mod processes;
mod pruning;
mod records;
mod reply;
mod reports;
mod returns;
mod statements;
mod store;
mod unreadable;

pub use alerts::SeaOrmBudgetAlerts;
pub(crate) use processes::count_unended;
pub use reports::SeaOrmLedgerReports;
pub use store::SeaOrmBudgetStore;
pub(crate) use unreadable::UnreadableRows;
