//! The results of commands, as JSON and as text.

mod format;
mod records;
mod usage;

pub use format::*;
pub use records::*;
pub use usage::*;
