//! The output of commands.

mod progress;
mod records;
mod stdout;
mod text;

pub use progress::Progress;
pub use records::{Column, List, UsdNumber, columns, per_million_tokens, pointer, record};
pub use stdout::{Line, Output, counted, note, table, table_lines};
pub use text::{escape, indent, with_next};
