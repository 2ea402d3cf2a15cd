//! The output of commands.

mod stdout;
mod text;

pub use stdout::{Line, Output, note, table, table_lines};
pub use text::{escape, indent};
