//! The output of commands.

mod escape;
mod indent;
mod stdout;

pub use escape::escape;
pub use indent::indent;
pub use stdout::{Line, Output, note, table, table_lines};
