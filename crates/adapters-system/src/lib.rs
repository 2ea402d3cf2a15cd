//! What the machine gives: time, waiting, ids, secrets, and limits on requests per minute.

mod clock;
mod ids;
mod rate_limiter;
mod secrets;

pub use clock::*;
pub use ids::*;
pub use rate_limiter::*;
pub use secrets::*;
