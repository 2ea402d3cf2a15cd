//! Time, ids and secrets, as ports, so that nothing in this crate reads a clock or draws a number.

mod ports;

pub use ports::*;
