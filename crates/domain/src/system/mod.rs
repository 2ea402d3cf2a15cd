//! Time, ids, secrets and threads as ports, so that this crate never reads a clock or draws a random number itself.

mod ports;
mod time;

pub use ports::*;
pub use time::*;
