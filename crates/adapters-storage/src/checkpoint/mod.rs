//! Checkpoints of the write-ahead log in the background.
//!
//! By default SQLite checkpoints within the commit that takes the log past 1,000 pages, with three fsyncs, and a
//! request waits for it. A serving process takes this over: its commits only append to the log, and a task with its own
//! connection copies it to the database, without blocking readers or writers. Processes that run one command keep
//! SQLite's default.
//!
//! Only the length of the log depends on the time of a checkpoint. A commit is in the log, with checksums, before it is
//! acknowledged. The log is restarted only after all of it is in the database and the database is synced. After a kill
//! at any time, every commit is therefore found in the log or in the database.

mod commits;
mod connection;
mod state;
mod status;
mod supervisor;
mod task;

pub(crate) use commits::Commits;
pub(crate) use state::Checkpoints;
pub use status::{CheckpointLimits, WalStatus};
