//! Observability of requests: metrics for the operator, traces for the destinations of a workspace.

mod broadcaster;
mod delivery;
mod destination;
mod model;
mod ports;
mod publish_budget_alerts;
mod trace;

pub use broadcaster::Broadcaster;
pub use delivery::*;
pub use destination::*;
pub use model::*;
pub use ports::*;
pub use publish_budget_alerts::*;
pub use trace::*;
