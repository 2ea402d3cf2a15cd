//! Rate limits: requests and tokens per minute.

mod gcra;
mod model;
mod ports;
mod replicas;

pub use gcra::*;
pub use model::*;
pub use ports::*;
pub use replicas::*;
