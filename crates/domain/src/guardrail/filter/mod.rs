//! Content filters: what is looked for in the texts of a request, and what becomes of it.

mod aliases;
mod apply;
mod errors;

pub use aliases::*;
pub use apply::*;
pub use errors::*;
