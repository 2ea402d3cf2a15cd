//! Money that may be spent: limits, what counts against them, and the reservations that keep them.
//!
//! Every request that could cost something is bounded before anything is sent, the bound is reserved in every account
//! that it counts in, and the real cost replaces it afterwards. So what is spent and reserved together never exceeds a
//! limit, whatever runs at the same time.

mod admission;
mod bill;
mod errors;
mod model;
mod period;
mod ports;

pub use admission::*;
pub use bill::*;
pub use errors::*;
pub use model::*;
pub use period::*;
pub use ports::*;
