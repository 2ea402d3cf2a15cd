//! What others get to see of requests: measures for the operator, traces for the destinations of a workspace.

mod broadcast;
mod model;
mod ports;

pub use broadcast::*;
pub use model::*;
pub use ports::*;
