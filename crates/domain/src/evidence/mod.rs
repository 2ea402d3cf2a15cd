//! Evidence: the decisions of the answers of presets, and their labels.

mod errors;
mod label_answers;
mod list_evidence;
mod model;
mod ports;
mod submit_feedback;

pub use errors::*;
pub use label_answers::*;
pub use list_evidence::*;
pub use model::*;
pub use ports::*;
pub use submit_feedback::*;
