//! The results of commands, as JSON and as text.

mod audit;
mod container;
mod csv;
mod destination;
mod document;
mod endpoint;
mod guardrail;
mod journal;
mod key;
mod limit;
mod list;
mod money;
mod rejection;
mod time;
mod usage;
mod usage_csv;
mod usage_sum;
mod workspace;

pub use audit::*;
pub use container::*;
pub use csv::*;
pub use destination::*;
pub use document::*;
pub use endpoint::*;
pub use guardrail::*;
pub use journal::*;
pub use key::*;
pub use limit::*;
pub use list::*;
pub use money::*;
pub use rejection::*;
pub use time::*;
pub use usage::*;
pub use usage_csv::*;
pub use usage_sum::*;
pub use workspace::*;
