//! The command line.

mod args;
mod container;
mod endpoint;
mod guardrail;
mod key;
mod stores;
mod workspace;

pub use args::*;
pub use container::*;
pub use endpoint::*;
pub use guardrail::*;
pub use key::*;
pub use stores::*;
pub use workspace::*;

#[cfg(test)]
mod tests;
