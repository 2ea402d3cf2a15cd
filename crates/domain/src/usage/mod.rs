//! What was used and what it cost.

mod errors;
mod get_generation;
mod model;
mod ports;

pub use errors::*;
pub use get_generation::*;
pub use model::*;
pub use ports::*;
