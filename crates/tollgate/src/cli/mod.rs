//! The command line.

mod args;
mod data;
mod manage;

pub use args::*;
pub use data::*;
pub use manage::*;

#[cfg(test)]
mod tests;
