//! Containers: sandboxes with files under a prefix of the blob store.

mod errors;
mod model;
mod ports;

pub use errors::*;
pub use model::*;
pub use ports::*;
