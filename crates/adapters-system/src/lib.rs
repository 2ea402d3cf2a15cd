//! What the machine gives: time, waiting, ids, secrets, random numbers, and limits on requests per minute.

mod clock;
mod ids;
mod randomness;
mod rate_limiter;
mod secrets;

pub use clock::*;
pub use ids::*;
pub use randomness::*;
pub use rate_limiter::*;
pub use secrets::*;
