//! `[journal]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::section::Section;
use super::values::{Millis, Within};
use super::{JournalConfig, JournalSync, StorageConfig};

const MIB: u64 = 1 << 20;
/// A few segments of the journal.
const SMALLEST: u64 = 64 * MIB;
const LARGEST: u64 = 1024 * 1024 * MIB;
/// A week.
const LONGEST_KEEP: u64 = 604_800_000;

/// The keys of `[journal]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawJournal {
    path: Option<String>,
    sync: Option<JournalSync>,
    max_bytes: Option<Within<u64, SMALLEST, LARGEST>>,
    retention_ms: Option<Millis<0, LONGEST_KEEP>>,
}

/// Checks `[journal]`. By default the folder is beside the database or the files of this machine, with the database's
/// durability.
pub fn journal(section: &Section<RawJournal>, storage: &StorageConfig) -> JournalConfig {
    let path = section.path.as_deref().map(|path| section.resolve("path", Path::new(path)));
    JournalConfig {
        path: path.unwrap_or_else(|| beside(&storage.file)),
        sync: section.sync.unwrap_or(if storage.synchronous_full {
            JournalSync::Always
        } else {
            JournalSync::Interval
        }),
        max_bytes: section.max_bytes.map_or(1024 * MIB, Within::get),
        keep: section.retention_ms.map_or(Duration::from_mins(10), Millis::get),
    }
}

/// Returns the default folder: `tollgate.db` has its journal in `tollgate-journal`, so that databases of one folder
/// have separate journals.
pub(super) fn beside(database: &Path) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    database.with_file_name(format!("{stem}-journal"))
}
