//! Questions, the provider input that contains them, and validated answers.

mod answer;
mod answer_rules;
mod confidence;
pub(crate) mod inline_content;
mod provider_input;
mod questions;

pub use answer::*;
pub use answer_rules::*;
pub use confidence::*;
pub use provider_input::*;
pub use questions::*;
