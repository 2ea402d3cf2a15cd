//! Usage records: their rows and queries. [`crate::budget`] writes them.

pub(crate) mod ids;
mod months;
mod rejections;
mod repository;
mod row;
mod stored_cost;

pub use months::{ChangedMonths, UsageMonths};
pub use rejections::SeaOrmRejectionStore;
pub use repository::SeaOrmUsageRepository;
pub(crate) use row::{RECORD_COLUMNS, record_values};
pub(crate) use stored_cost::{COST_COLUMNS, StoredCosts};
