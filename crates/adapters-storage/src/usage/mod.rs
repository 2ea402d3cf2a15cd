//! Usage records: read one by one, written in batches.

mod ledger;
mod repository;
mod row;
mod writer;

pub use ledger::SeaOrmLedger;
pub use repository::SeaOrmUsageRepository;
