//! Time, ids, secrets and threads as ports, so that this crate never reads a clock or draws a random number itself.

mod cancel;
mod inline_executor;
mod line_limit;
mod ports;
mod retry_after;
mod time;

pub use cancel::*;
pub use inline_executor::*;
pub use line_limit::*;
pub use ports::*;
pub use retry_after::*;
pub use time::*;
