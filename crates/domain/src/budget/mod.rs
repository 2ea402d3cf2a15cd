//! Money that may be spent: limits, what counts against them, and the reservations that keep them.
//!
//! Every request that could cost something is bounded before anything is sent, the bound is reserved in every account
//! that it counts in, and the real cost replaces it afterwards. So what is spent and reserved together never exceeds a
//! limit, whatever runs at the same time.

mod admission;
pub mod allowances;
mod backlog;
mod bill;
mod errors;
mod model;
mod period;
mod ports;
mod settle_backlog;

pub use admission::*;
pub use backlog::{Backlog, BacklogBounds, BacklogStanding};
pub use bill::*;
pub use errors::*;
pub use model::*;
pub use period::*;
pub use ports::*;
pub use settle_backlog::SettleBacklog;
pub(crate) use settle_backlog::charged;
