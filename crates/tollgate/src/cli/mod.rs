//! The command line.

mod args;
mod data;
mod eval;
mod manage;
mod server;

pub use args::*;
pub use data::*;
pub use eval::*;
pub use manage::*;
pub use server::*;

#[cfg(test)]
mod tests;
