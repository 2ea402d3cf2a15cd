//! Containers: sandboxes with files under a prefix of the blob store.

mod model;
mod ports;
mod verified_source;

pub use model::*;
pub use ports::*;
pub use verified_source::*;
