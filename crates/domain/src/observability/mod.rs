//! What others get to see of requests: measures for the operator, traces for the destinations of a workspace.

mod model;
mod ports;

pub use model::*;
pub use ports::*;
