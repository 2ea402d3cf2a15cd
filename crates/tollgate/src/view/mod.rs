//! The results of commands, as JSON and as text.

mod endpoint;
mod format;
mod records;
mod status;

pub use endpoint::*;
pub use format::*;
pub use records::*;
pub use status::*;
