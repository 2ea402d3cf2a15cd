//! The append-only journal of one process: segment files in a folder that the process locks.
//!
//! An entry is one `write`; a separate thread syncs. Readers return every entry with a valid checksum, report gaps
//! between them, and cut off a torn end. The payload of an entry is opaque.

mod disk;
mod folder;
mod format;
#[cfg(fuzzing)]
pub mod fuzzing;
mod reader;
mod search;
mod segment;
mod settings;
mod tail;
#[cfg(feature = "testing")]
#[expect(clippy::panic, reason = "a machine of a test fails by panicking")]
pub mod testing;
mod usage_journal;
mod writer;

#[cfg(feature = "fault-points")]
pub use disk::set_fault_hook;
pub use disk::{Disk, LocalDisk, SegmentFile};
pub use folder::{FolderLock, OrphanFolder, find_orphans};
pub use format::{Entry, Origin};
pub use reader::{Gap, GapReason, ReadReport, quarantine_gaps, read_folder};
pub use settings::{JournalError, JournalSettings};
pub use usage_journal::{Durability, LocalJournal, LocalJournalSettings, LocalJournals};
pub use writer::{Journal, JournalPorts};
