//! The output of commands.

mod format;
mod progress;
mod records;
mod stdout;
mod text;

pub use format::{List, UsdNumber, per_million_tokens};
pub use progress::Progress;
pub use records::{Column, columns, pointer, record};
pub use stdout::{Line, Output, counted, note, table, table_lines};
pub use text::{escape, indent, with_next};
