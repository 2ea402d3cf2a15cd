//! Containers: sandboxes with files under a prefix of the blob store.

mod model;
mod ports;

pub use model::*;
pub use ports::*;
