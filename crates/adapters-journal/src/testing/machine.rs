//! Processes that write journals into one temporary folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use domain::budget::{OrphanedJournals, UsageJournal};
use domain::ids::ProcessId;
use domain::testing::contract::JournalMachine;
use domain::testing::{FixedClock, JournalBounds};
use tempfile::TempDir;
use uuid::Uuid;

use super::VolatileDisk;
use crate::format::{ENTRY_HEADER_BYTES, HEADER_BYTES, entry_bytes};
use crate::segment::list_segments;
use crate::settings::JournalSettings;
use crate::usage_journal::{Durability, LocalJournal, LocalJournalSettings, LocalJournals};
use crate::writer::JournalPorts;

/// The boot id in segments after a power failure.
const BOOT_BEFORE: Uuid = Uuid::from_u128(1);

/// A machine with real journals in a temporary folder.
pub struct LocalMachine {
    folder: TempDir,
    store: Uuid,
    clock: FixedClock,
    disk: VolatileDisk,
    living: Mutex<Vec<Weak<LocalJournal>>>,
}

impl LocalMachine {
    /// Creates a machine without journals, whose processes fold into a store.
    ///
    /// # Errors
    /// The temporary folder cannot be created.
    pub fn new(store: Uuid, clock: FixedClock) -> io::Result<Self> {
        let folder = TempDir::new()?;
        Ok(Self { folder, store, clock, disk: VolatileDisk::default(), living: Mutex::default() })
    }

    /// Returns the folder of the journals.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("journals")
    }

    /// Returns the disk.
    pub fn disk(&self) -> &VolatileDisk {
        &self.disk
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    fn living(&self, process: ProcessId) -> Option<Arc<LocalJournal>> {
        let living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.iter().filter_map(Weak::upgrade).find(|journal| journal.process() == process)
    }
}

impl JournalMachine for LocalMachine {
    fn start(&self, process: ProcessId, bounds: JournalBounds) -> Arc<dyn UsageJournal> {
        let settings = JournalSettings {
            // Small segments, so that tests cover their boundaries.
            segment_bytes: (8 * bounds.max_payload_bytes) as u64,
            max_payload_bytes: bounds.max_payload_bytes,
            sync_interval: if bounds.is_synced_by_hand { None } else { Some(Duration::from_millis(1)) },
            sync_retry: Duration::ZERO,
            max_memory_bytes: 2 * bounds.max_payload_bytes,
            max_unfolded_bytes: bounds.max_bytes,
        };
        let keep = if bounds.keeps_folded { Duration::from_hours(1) } else { Duration::ZERO };
        let local = LocalJournalSettings { store: self.store, durability: Durability::Written, keep };
        let ports = JournalPorts { disk: Arc::new(self.disk.clone()), clock: Arc::new(self.clock.clone()) };
        let journal = LocalJournal::create(&self.root(), process, local, settings, &ports);
        let journal = Arc::new(journal.unwrap_or_else(|error| panic!("the journal of {process}: {error}")));
        self.living.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&journal));
        journal
    }

    fn sync(&self, process: ProcessId) {
        if let Some(Err(error)) = self.living(process).map(|journal| journal.sync()) {
            panic!("the sync of {process}: {error}");
        }
    }

    fn orphans(&self, keep: Duration) -> Arc<dyn OrphanedJournals> {
        Arc::new(LocalJournals::new(self.root(), self.store, keep))
    }

    fn set_disk_failing(&self, is_failing: bool) {
        self.disk.set_failing(is_failing);
    }

    fn lose_power(&self) {
        done(self.disk.lose_power(BOOT_BEFORE, || false));
    }

    fn damage(&self, process: ProcessId, sequence: u64) {
        for (_, path) in done(list_segments(&self.root().join(process.to_string()))) {
            let mut bytes = done(fs::read(&path));
            if let Some(kind) = position(&bytes, sequence).and_then(|at| bytes.get_mut(at + ENTRY_HEADER_BYTES - 1)) {
                *kind ^= 0x40;
                return done(fs::write(&path, bytes));
            }
        }
        panic!("{process} has no entry {sequence}");
    }

    fn back_up(&self) {
        done(copy_folder(&self.root(), &self.backup()));
    }

    fn restore(&self) {
        let root = self.root();
        if root.exists() {
            done(fs::remove_dir_all(&root));
        }
        done(copy_folder(&self.backup(), &root));
    }
}

/// Returns the offset of an entry in a segment.
fn position(bytes: &[u8], sequence: u64) -> Option<usize> {
    let mut at = HEADER_BYTES;
    loop {
        let header: &[u8; ENTRY_HEADER_BYTES] = bytes.get(at..)?.first_chunk()?;
        if header[8..16] == sequence.to_le_bytes() {
            return Some(at);
        }
        let length = u32::from_le_bytes(*header.first_chunk()?);
        if length == 0 && header[16] == 0 {
            return None;
        }
        at += entry_bytes(usize::try_from(length).ok()?);
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) =
            (entry.as_ref().map(fs::DirEntry::path), entry.as_ref().map(|entry| to.join(entry.file_name())));
        let (Ok(from), Ok(to)) = (from, to) else { return Err(io::ErrorKind::Other.into()) };
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

fn done<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the folder of journals: {error}"))
}
