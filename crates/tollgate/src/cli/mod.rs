//! The command line.

mod args;
mod ask;
mod audit;
mod config;
mod container;
mod destination;
mod document;
mod endpoint;
mod guardrail;
mod journal;
mod key;
mod provider;
mod stores;
mod usage;
mod workspace;

pub use args::*;
pub use ask::*;
pub use audit::*;
pub use config::*;
pub use container::*;
pub use destination::*;
pub use document::*;
pub use endpoint::*;
pub use guardrail::*;
pub use journal::*;
pub use key::*;
pub use provider::*;
pub use stores::*;
pub use usage::*;
pub use workspace::*;

#[cfg(test)]
mod tests;
