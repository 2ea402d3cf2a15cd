//! Decisions: questions about a state, answered by a model.

mod answers;
mod errors;
mod model;
mod parse;
mod ports;
mod submit_decision;

pub use answers::*;
pub use errors::*;
pub use model::*;
pub use parse::*;
pub use ports::*;
pub use submit_decision::*;
