//! Rate limits that all replicas share, counted in a Valkey or Redis server.

mod buckets;
mod connector;
mod error;
mod limiter;
mod link;
mod outage_log;
mod script;
mod settings;
mod status;

pub use error::ValkeyError;
pub use limiter::{Fallback, ValkeyRateLimiter};
pub use settings::{Credentials, ValkeySettings};
pub use status::RateStoreStatus;
