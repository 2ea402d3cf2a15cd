//! Presets: named sets of questions, with the models that answer them.

mod cascade;
mod errors;
#[cfg(test)]
pub(crate) mod fixtures;
mod manage_presets;
mod model;
mod ports;

pub use cascade::*;
pub use errors::*;
pub use manage_presets::*;
pub use model::*;
pub use ports::*;
