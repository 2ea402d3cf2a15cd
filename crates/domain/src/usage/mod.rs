//! What was used and what it cost.

mod model;
mod ports;

pub use model::*;
pub use ports::*;
