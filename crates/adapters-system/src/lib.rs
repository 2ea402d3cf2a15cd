//! What the machine gives: time, waiting, threads for long work, ids, secrets, random numbers, and limits on rates.

mod clock;
mod descriptors;
mod ids;
mod os_user;
mod randomness;
mod rate_limiter;
mod secrets;
mod workers;

pub use clock::*;
pub use descriptors::*;
pub use ids::*;
pub use os_user::*;
pub use randomness::*;
pub use rate_limiter::*;
pub use secrets::*;
pub use workers::*;
