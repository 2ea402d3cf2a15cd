//! The results of commands, as JSON and as text.

mod format;
mod records;

pub use format::*;
pub use records::*;
