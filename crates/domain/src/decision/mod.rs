//! Decisions: questions about a state, answered by a model.

mod answers;
mod confidence;
mod errors;
pub(crate) mod inline_content;
mod model;
mod parse;
mod ports;
mod settings;
mod submit_decision;

pub use answers::*;
pub use confidence::*;
pub use errors::*;
pub use model::*;
pub use parse::*;
pub use ports::*;
pub use settings::*;
pub use submit_decision::*;
