//! System services: clocks, timers, worker threads, ids, secrets, random numbers, and rate limits.

mod clock;
mod process;
mod randomness;
mod rate_limiter;
mod terminal;
mod workers;

pub use clock::*;
pub use process::*;
pub use randomness::*;
pub use rate_limiter::*;
pub use terminal::*;
pub use workers::*;
