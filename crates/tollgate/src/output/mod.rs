//! What commands write.

mod indent;
mod stdout;

pub use indent::indent;
pub use stdout::{Output, note, table};
