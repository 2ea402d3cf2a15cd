//! Money and usage: records are read one by one; what is reserved and charged is written in batches.

mod audit;
mod batch;
mod books;
mod charges;
mod claims;
mod counters;
mod expiry;
mod held;
mod job;
mod known;
mod ledger;
mod limits;
mod pruning;
mod repository;
mod row;
mod script;
mod statements;
mod writer;

pub use ledger::SeaOrmLedger;
pub use repository::SeaOrmUsageRepository;
