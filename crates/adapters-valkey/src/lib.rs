//! Rate limits that all replicas share, counted in a Valkey or Redis server.

mod error;
mod limiter;
mod link;
mod script;
mod settings;

pub use error::{RateStoreStatus, ValkeyError};
pub use limiter::{Fallback, ValkeyRateLimiter};
pub use settings::{Credentials, ValkeySettings};
