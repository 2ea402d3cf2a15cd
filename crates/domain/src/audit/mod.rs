//! The audit log: who changed what, in a chain that shows when it was tampered with.

mod model;
mod ports;

pub use model::*;
pub use ports::*;
