//! Usage records: the tokens, attempts and cost of requests.

mod attempt;
mod evidence;
mod model;
mod ports;
mod rejection;
mod sums;

pub use attempt::*;
pub use evidence::*;
pub use model::*;
pub use ports::*;
pub use rejection::*;
pub use sums::*;
