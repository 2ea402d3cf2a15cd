//! The authority of callers of management operations.

mod model;
mod scope;
#[cfg(test)]
mod tests;

pub use model::*;
pub use scope::*;
