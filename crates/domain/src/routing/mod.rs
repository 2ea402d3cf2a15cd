//! Where a Decisions request can go, in which order, and what a failed attempt means.

mod endpoint;
mod failure;

pub use endpoint::*;
pub use failure::*;
