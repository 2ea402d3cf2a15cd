//! System services: clocks, timers, worker threads, ids, secrets, random numbers, and rate limits.

mod clock;
mod descriptors;
mod disk_space;
mod ids;
mod os_user;
mod randomness;
mod rate_limiter;
mod secrets;
mod workers;

pub use clock::*;
pub use descriptors::*;
pub use disk_space::*;
pub use ids::*;
pub use os_user::*;
pub use randomness::*;
pub use rate_limiter::*;
pub use secrets::*;
pub use workers::*;
