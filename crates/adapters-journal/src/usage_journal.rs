//! The journal as a port of the domain.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use domain::budget::{
    EntryKind, EntrySink, JournalDamage, JournalEntry, JournalGap, OrphanedJournal, OrphanedJournals, UsageJournal,
    UsageJournalError, UsageJournalStatus,
};
use domain::ids::ProcessId;
use domain::system::Soon;
use uuid::Uuid;

use crate::disk::reach;
use crate::folder::{OrphanFolder, find_live, find_orphans};
use crate::format::Origin;
use crate::reader::{
    FolderReader, Gap, GapReason, foreign_store, last_sequence, quarantine_gaps, read_folder, trim_folder,
};
use crate::settings::{JournalError, JournalSettings};
use crate::writer::{Journal, JournalPorts};

/// The folder for unreadable parts of journals, beside the folders of processes.
const QUARANTINE: &str = "quarantine";
/// The id of the current boot of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The durability of an appended entry before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Written: the entry survives the end of the process.
    #[default]
    Written,
    /// Synced: the entry survives a power failure.
    Synced,
}

/// The journal of the running process as a port of the domain.
pub struct LocalJournal {
    journal: Journal,
    process: ProcessId,
    durability: Durability,
    keep: Duration,
}

/// The settings of a [`LocalJournal`] besides those of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalJournalSettings {
    /// The identity of the store that the journal is folded into.
    pub store: Uuid,
    /// The durability of an entry before the answer.
    pub durability: Durability,
    /// The time for which folded segments are kept.
    pub keep: Duration,
}

impl LocalJournal {
    /// Creates the folder of a new process under `root`.
    ///
    /// # Errors
    /// [`JournalError::Folder`] and [`JournalError::Write`].
    pub fn create(
        root: &Path,
        process: ProcessId,
        local: LocalJournalSettings,
        settings: JournalSettings,
        ports: &JournalPorts,
    ) -> Result<Self, JournalError> {
        let origin = Origin { store: local.store, process: process.uuid(), boot: boot_id() };
        let journal = Journal::create(root, origin, settings, ports)?;
        Ok(Self { journal, process, durability: local.durability, keep: local.keep })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        self.journal.folder()
    }

    /// Syncs all written entries. Blocks.
    ///
    /// # Errors
    /// Those of [`Journal::sync`].
    pub fn sync(&self) -> Result<(), JournalError> {
        self.journal.sync()
    }
}

#[async_trait]
impl UsageJournal for LocalJournal {
    fn process(&self) -> ProcessId {
        self.process
    }

    fn append_sent(&self, kind: EntryKind, payload: &[u8], reserve: usize) -> Result<u64, UsageJournalError> {
        self.journal.append_and_reserve(kind as u8, payload, reserve).map_err(port_error)
    }

    fn append_end(&self, kind: EntryKind, payload: &[u8], reserved: usize) -> Result<u64, UsageJournalError> {
        self.journal.append_reserved(kind as u8, payload, reserved).map_err(port_error)
    }

    fn wait_sendable(&self, _: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        Soon::Left(ready(Ok(())))
    }

    fn wait_durable(&self, sequence: u64) -> Soon<'_, Result<(), UsageJournalError>> {
        match self.durability {
            Durability::Written => Soon::Left(ready(Ok(()))),
            Durability::Synced => Soon::Right(self.wait_synced(sequence)),
        }
    }

    async fn wait_synced(&self, sequence: u64) -> Result<(), UsageJournalError> {
        self.journal.wait_synced(sequence).await.map_err(port_error)
    }

    fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, UsageJournalError> {
        self.journal.unfolded(max_entries, max_bytes).map_err(port_error)
    }

    fn remove_folded(&self, up_to: u64) {
        self.journal.remove_folded(up_to);
    }

    fn remove_segments(&self, keep_from: u64) -> Result<usize, UsageJournalError> {
        self.journal.remove_segments(keep_from, self.keep).map_err(port_error)
    }

    fn status(&self) -> UsageJournalStatus {
        self.journal.status()
    }

    async fn seal(&self) -> Vec<JournalEntry> {
        self.journal.seal()
    }
}

/// The journals of ended processes below a folder.
#[derive(Debug, Clone)]
pub struct LocalJournals {
    root: PathBuf,
    store: Uuid,
    keep: Duration,
    /// The processes with journals of other stores, which were logged.
    foreign: Arc<Mutex<HashMap<Uuid, Uuid>>>,
}

impl LocalJournals {
    /// Returns the journals below `root` that were written for a store. Recovered ones are kept for `keep`.
    pub fn new(root: impl Into<PathBuf>, store: Uuid, keep: Duration) -> Self {
        Self { root: root.into(), store, keep, foreign: Arc::default() }
    }

    /// Returns true for a journal of another store, which only a process of that store may recover. Logs each store
    /// once: `journal.path` may be the folder of another installation by mistake.
    fn is_foreign(&self, process: Uuid, folder: &Path) -> Result<bool, JournalError> {
        let mut known = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(&process) {
            return Ok(true);
        }
        let Some(store) = foreign_store(folder, self.store, process)? else { return Ok(false) };
        if !known.values().any(|logged| *logged == store) {
            tracing::warn!(path = %folder.display(), store = %store, "journals of another database are left alone");
        }
        known.insert(process, store);
        Ok(true)
    }
}

impl LocalJournals {
    /// Returns the running processes of this machine with journals, each with the number of its last entry.
    ///
    /// # Errors
    /// [`JournalError::Folder`].
    pub fn live(&self) -> Result<Vec<(ProcessId, u64)>, JournalError> {
        let last = |(process, path): (Uuid, PathBuf)| {
            Ok((ProcessId::from_uuid(process), last_sequence(&path, self.store, process)?))
        };
        find_live(&self.root)?.into_iter().map(last).collect()
    }
}

#[async_trait]
impl OrphanedJournals for LocalJournals {
    async fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError> {
        let folder = self.root.join(process.to_string());
        folder.try_exists().map_err(|error| port_error(JournalError::folder(folder)(error)))
    }

    async fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError> {
        let found = find_orphans(&self.root, |process, folder| self.is_foreign(process, folder)).map_err(port_error)?;
        let orphan = |folder| Box::new(LocalOrphan { folder, journals: self.clone() }) as Box<dyn OrphanedJournal>;
        Ok(found.into_iter().map(orphan).collect())
    }
}

/// A locked journal of an ended process.
struct LocalOrphan {
    folder: OrphanFolder,
    journals: LocalJournals,
}

impl LocalOrphan {
    fn path(&self) -> &Path {
        self.folder.lock.path()
    }

    /// Returns the time of the last write to any file.
    fn last_write(&self) -> Result<SystemTime, JournalError> {
        let mut newest = SystemTime::UNIX_EPOCH;
        for file in fs::read_dir(self.path()).map_err(JournalError::folder(self.path()))? {
            let modified = file.and_then(|file| file.metadata()).and_then(|found| found.modified());
            newest = newest.max(modified.map_err(JournalError::folder(self.path()))?);
        }
        Ok(newest)
    }
}

#[async_trait]
impl OrphanedJournal for LocalOrphan {
    fn process(&self) -> ProcessId {
        ProcessId::from_uuid(self.folder.process)
    }

    async fn read(&self, sink: &mut dyn EntrySink) -> Result<JournalDamage, UsageJournalError> {
        let reader = FolderReader::open(self.path(), self.journals.store, self.folder.process);
        let mut reader = reader.map_err(port_error)?;
        loop {
            let mut entries = Vec::new();
            let is_read = reader.read_segment(|entry| {
                let (sequence, kind, payload) = (entry.sequence, entry.kind, entry.payload.into());
                entries.push(JournalEntry { sequence, kind, payload });
                Ok(())
            });
            if !is_read.map_err(port_error)? {
                break;
            }
            sink.take(entries).await?;
        }
        let (report, boot) = (reader.finish(), boot_id());
        Ok(JournalDamage {
            gaps: report.gaps.iter().map(describe).collect(),
            is_of_another_boot: report.boots.iter().any(|other| *other != boot),
        })
    }

    async fn quarantine(&self) -> Result<(), UsageJournalError> {
        let report = read_folder(self.path(), self.journals.store, self.folder.process, |_| Ok(()));
        let report = report.map_err(port_error)?;
        let folder = self.journals.root.join(QUARANTINE);
        let files = quarantine_gaps(&report.gaps, self.folder.process, &folder).map_err(port_error)?;
        for file in files {
            tracing::error!(path = %file.display(), "unreadable part of a journal quarantined");
        }
        Ok(())
    }

    async fn finish(&self) -> Result<(), UsageJournalError> {
        trim_folder(self.path(), self.journals.store, self.folder.process).map_err(port_error)
    }

    async fn remove_if_old(&self) -> Result<bool, UsageJournalError> {
        let age = self.last_write().map_err(port_error)?.elapsed().unwrap_or_default();
        if age < self.journals.keep {
            return Ok(false);
        }
        reach("before removal of a folder");
        fs::remove_dir_all(self.path()).map_err(|error| port_error(JournalError::folder(self.path())(error)))?;
        Ok(true)
    }
}

fn describe(gap: &Gap) -> JournalGap {
    let reason = match &gap.reason {
        GapReason::Damaged => "damaged bytes".to_owned(),
        GapReason::Missing => "missing entries".to_owned(),
        GapReason::ForeignStore(store) => format!("segment of the store {store}"),
        GapReason::ForeignProcess(process) => format!("segment of the process {process}"),
        GapReason::Version(version) => format!("segment of the format version {version}"),
        GapReason::NotAFile(name) => format!("{name} instead of a segment"),
        GapReason::TooLarge(bytes) => format!("{bytes} bytes, more than a segment can have,"),
    };
    let place = gap.bytes.as_ref().map(|(path, range)| match gap.reason {
        GapReason::NotAFile(_) | GapReason::TooLarge(_) => format!(" at {}", path.display()),
        _ => {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!(" in {file} at {}..{}", range.start, range.end)
        }
    });
    let reason = reason + place.as_deref().unwrap_or_default();
    JournalGap { reason, first: gap.sequences.start, end: gap.sequences.end }
}

fn port_error(error: JournalError) -> UsageJournalError {
    match error {
        JournalError::Full { unfolded_bytes, max_bytes } => UsageJournalError::Full { unfolded_bytes, max_bytes },
        JournalError::TooLarge { bytes, max_bytes } => UsageJournalError::TooLarge { bytes, max_bytes },
        JournalError::Retained { sequence, source } => {
            UsageJournalError::Retained { sequence, source: Box::new(source) as Box<dyn Error + Send + Sync> }
        }
        JournalError::Sealed => UsageJournalError::Sealed,
        other => UsageJournalError::Unavailable(Box::new(other)),
    }
}

/// Returns the boot id of the machine. Without one, every start counts as a new boot.
fn boot_id() -> Uuid {
    let found = fs::read_to_string(BOOT_ID).ok().and_then(|text| Uuid::parse_str(text.trim()).ok());
    found.unwrap_or_else(|| Uuid::from_u128(std::process::id().into()))
}
