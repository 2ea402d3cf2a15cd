//! The authority of callers of management operations.

mod errors;
mod model;
mod scope;
#[cfg(test)]
mod tests;

pub use errors::*;
pub use model::*;
pub use scope::*;
