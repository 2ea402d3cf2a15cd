//! Usage records: read one by one, written in batches.

mod repository;
mod row;
mod writer;

pub use repository::SeaOrmUsageRepository;
