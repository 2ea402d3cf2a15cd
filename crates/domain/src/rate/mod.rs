//! Rate limits: requests and tokens per minute.

mod gcra;
mod model;
mod ports;

pub use gcra::*;
pub use model::*;
pub use ports::*;
