//! Questions, the provider input that contains them, and validated answers.

mod answer;
mod confidence;
mod confidence_source;
pub(crate) mod inline_content;
mod provider_input;
mod questions;

pub use answer::*;
pub use confidence::*;
pub use confidence_source::*;
pub use provider_input::*;
pub use questions::*;
