//! Rate limits: requests and tokens per minute.

mod gcra;
mod model;

pub use gcra::*;
pub use model::*;
