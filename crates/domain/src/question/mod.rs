//! Questions, the provider input that contains them, and validated answers.

mod answer;
mod confidence;
mod provider_input;
mod questions;

pub use answer::*;
pub use confidence::*;
pub use provider_input::*;
pub use questions::*;
