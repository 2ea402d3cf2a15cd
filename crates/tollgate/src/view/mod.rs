//! What commands show, as JSON and as text.

mod container;
mod endpoint;
mod guardrail;
mod key;
mod list;
mod money;
mod time;
mod usage;
mod workspace;

pub use container::*;
pub use endpoint::*;
pub use guardrail::*;
pub use key::*;
pub use list::*;
pub use money::*;
pub use time::*;
pub use usage::*;
pub use workspace::*;
