//! What others get to see of requests: measures for the operator, traces for the destinations of a workspace.

mod broadcast;
mod broadcaster;
mod delivery;
mod destination;
mod model;
pub mod otlp;
mod ports;
mod sampling;

pub use broadcast::*;
pub use broadcaster::Broadcaster;
pub use delivery::*;
pub use destination::*;
pub use model::*;
pub use ports::*;
pub use sampling::*;
