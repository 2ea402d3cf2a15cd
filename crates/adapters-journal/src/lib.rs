//! The append-only journal of one process: segment files in a folder that the process locks.
//!
//! An entry is one `write`; a separate thread syncs. Readers return every entry with a valid checksum, report gaps
//! between them, and cut off a torn end. The payload of an entry is opaque.

mod disk;
mod error;
mod fault_points;
mod folder;
mod format;
#[cfg(fuzzing)]
pub mod fuzzing;
mod quarantine;
mod reader;
mod search;
mod segment;
mod segment_file;
mod settings;
mod tail;
#[cfg(feature = "testing")]
#[expect(clippy::panic, reason = "a machine of a test fails by panicking")]
pub mod testing;
mod usage_journal;
mod writer;

pub use disk::{Disk, LocalDisk, SegmentFile};
pub use error::JournalError;
#[cfg(feature = "fault-points")]
pub use fault_points::set_fault_hook;
pub use folder::{FolderLock, OrphanFolder, find_orphans};
pub use format::{Entry, Origin};
pub use quarantine::quarantine_gaps;
pub use reader::{Gap, GapReason, ReadReport, read_folder};
pub use settings::JournalSettings;
pub use tail::StoredEntry;
pub use usage_journal::{Durability, LocalJournal, LocalJournalSettings, LocalJournals};
pub use writer::{Journal, JournalPorts, JournalStatus};
