//! The output of commands.

mod progress;
mod stdout;
mod text;

pub use progress::Progress;
pub use stdout::{Line, Output, note, table, table_lines};
pub use text::{escape, indent};
