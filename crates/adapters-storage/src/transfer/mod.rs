//! The copy of a whole store into another one, on SQLite or PostgreSQL.
//!
//! Rows are copied table by table in the order of their primary keys. Each batch is written in one transaction with the
//! position after it, so that an interrupted copy continues where it ended. The row of `store_copies` marks the target
//! as unfinished until the copy is verified.

mod error;
mod fingerprint;
mod marker;
mod row;
mod store_copy;
mod table;
mod verification;

pub use error::CopyError;
pub use marker::UnfinishedCopy;
pub use store_copy::{CopyProgress, StoreCopy};
pub use verification::TableContent;
