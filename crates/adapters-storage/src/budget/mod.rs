//! Allowances: processes draw them from limits, return them, and fold charges.

mod accounted;
mod audit;
mod counters;
mod draw;
mod ends;
mod fold;
mod limits;
mod processes;
mod pruning;
mod records;
mod reply;
mod reports;
mod statements;
mod store;

pub use reports::SeaOrmLedgerReports;
pub use store::SeaOrmBudgetStore;
