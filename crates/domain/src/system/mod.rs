//! Time, ids, secrets and threads as ports, so that this crate never reads a clock or draws a random number itself.

mod cancel;
mod in_place;
mod ports;
mod time;

pub use cancel::*;
pub use in_place::*;
pub use ports::*;
pub use time::*;
