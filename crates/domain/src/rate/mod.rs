//! Requests and tokens per minute.

mod model;
mod ports;

pub use model::*;
pub use ports::*;
