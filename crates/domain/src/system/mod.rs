//! Time, ids and secrets, as ports, so that nothing in this crate reads a clock or draws a number.

mod cancel;
mod in_place;
mod ports;
mod time;

pub use cancel::*;
pub use in_place::*;
pub use ports::*;
pub use time::*;
