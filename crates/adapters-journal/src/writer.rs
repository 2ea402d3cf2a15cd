//! The writer of the journal of the running process.

mod shared;
mod state;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::budget::{JournalEntry, UsageJournalStatus};
use domain::system::{Clock, LineLimit};
use tokio::sync::watch;

use self::shared::{Shared, Threads};
use self::state::{Segments, State};
use crate::disk::{Disk, reach};
use crate::folder::FolderLock;
use crate::format::{Origin, entry_bytes};
use crate::settings::{JournalError, JournalSettings};

/// The journal of the running process. Its folder stays locked until the journal is sealed or dropped.
pub struct Journal {
    shared: Arc<Shared>,
    /// `None` once the journal is sealed.
    open: Mutex<Option<OpenFolder>>,
}

/// The folder of a journal that takes entries.
struct OpenFolder {
    // Dropped in this order: the threads end before the lock is released.
    threads: Threads,
    _lock: FolderLock,
}

/// The ports of a journal.
#[derive(Clone)]
pub struct JournalPorts {
    /// Creates segment files.
    pub disk: Arc<dyn Disk>,
    /// Its monotonic time measures the age of segments.
    pub clock: Arc<dyn Clock>,
}

impl Journal {
    /// Creates the folder of a new process under `root` and its first segment.
    ///
    /// # Errors
    /// [`JournalError::Folder`] and [`JournalError::Write`].
    pub fn create(
        root: &Path,
        origin: Origin,
        settings: JournalSettings,
        ports: &JournalPorts,
    ) -> Result<Self, JournalError> {
        let segments = |folder: &Path| Segments {
            disk: Arc::clone(&ports.disk),
            clock: Arc::clone(&ports.clock),
            folder: folder.to_owned(),
            origin,
            segment_bytes: settings.segment_bytes,
        };
        let (lock, first) =
            FolderLock::create(root, origin.process, |folder| segments(folder).create(1).map_err(JournalError::Write))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(first)),
            segments: segments(lock.path()),
            settings,
            synced: watch::Sender::new(0),
            syncing: Mutex::new(()),
            rotated: Condvar::new(),
            lines: LineLimit::default(),
        });
        let threads = Threads::start(&shared).map_err(JournalError::folder(lock.path()))?;
        Ok(Self { shared, open: Mutex::new(Some(OpenFolder { threads, _lock: lock })) })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.shared.segments.folder
    }

    /// Appends an entry and reserves `reserve` bytes of payload for the entry that will end its call, so that a full
    /// disk never prevents the charge of an answer. With 0 no bytes are reserved: the call has its reservation already.
    ///
    /// # Errors
    /// [`JournalError::Full`], [`JournalError::TooLarge`] and, while earlier entries wait for the disk,
    /// [`JournalError::Write`]: the entry was rejected. [`JournalError::Retained`]: the entry was accepted and will be
    /// written later, so the caller must append the end of the call at once.
    pub fn append_and_reserve(&self, kind: u8, payload: &[u8], reserve: usize) -> Result<u64, JournalError> {
        self.check_size(payload.len().max(reserve))?;
        let shared = &*self.shared;
        let mut state = shared.lock_unsealed()?;
        state.write_pending(&shared.segments).map_err(JournalError::Write)?;
        let bytes = entry_bytes(payload.len()) as u64;
        state.reserve(bytes + reserved_bytes(reserve), &shared.settings, &shared.segments)?;
        state.release(bytes);
        shared.write(&mut state, kind, payload)
    }

    /// Appends an entry with a reservation of `reserved` bytes of payload, which is released.
    ///
    /// # Errors
    /// [`JournalError::TooLarge`]: the entry was rejected. [`JournalError::Retained`]: see
    /// [`Self::append_and_reserve`].
    pub fn append_reserved(&self, kind: u8, payload: &[u8], reserved: usize) -> Result<u64, JournalError> {
        self.check_size(payload.len())?;
        let shared = &*self.shared;
        let mut state = shared.lock_unsealed()?;
        state.release(reserved_bytes(reserved));
        shared.write(&mut state, kind, payload)
    }

    /// Waits until everything up to an entry is synced.
    ///
    /// # Errors
    /// [`JournalError::Sealed`] if the journal is sealed before, [`JournalError::NotSynced`] if it ends.
    pub async fn wait_synced(&self, sequence: u64) -> Result<(), JournalError> {
        let mut synced = self.shared.synced.subscribe();
        if *synced.borrow() < sequence
            && let Some(open) = &*self.lock_open()
        {
            open.threads.request_sync();
        }
        let is_over = |synced: &u64| *synced >= sequence || self.lock_open().is_none();
        let last = *synced.wait_for(is_over).await.map_err(|_| JournalError::NotSynced)?;
        if last >= sequence { Ok(()) } else { Err(JournalError::Sealed) }
    }

    /// Ends the journal and releases its folder. Returns the entries that the disk rejected; a second call returns none.
    /// Blocks.
    pub fn seal(&self) -> Vec<JournalEntry> {
        let unwritten = {
            let mut state = self.shared.lock();
            state.is_sealed = true;
            state.write_pending(&self.shared.segments).ok();
            state.tail.take_unwritten()
        };
        let open = self.lock_open().take();
        // The sync thread syncs once more before it ends.
        drop(open);
        self.shared.synced.send_modify(|_| {});
        unwritten
    }

    fn lock_open(&self) -> MutexGuard<'_, Option<OpenFolder>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs all written entries. Blocks.
    ///
    /// # Errors
    /// [`JournalError::NotSynced`] and [`JournalError::Write`]; unsynced entries are written again.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.shared.sync()
    }

    /// Returns the oldest synced entries that are not folded. May read the disk.
    ///
    /// # Errors
    /// [`JournalError::Folder`].
    pub fn unfolded(&self, max_entries: usize, max_bytes: usize) -> Result<Vec<JournalEntry>, JournalError> {
        let synced = *self.shared.synced.borrow();
        let batch = self.shared.lock().tail.batch(synced, max_entries, max_bytes);
        let loaded: io::Result<_> = batch.into_iter().map(crate::tail::EntryLocation::load).collect();
        loaded.map_err(JournalError::folder(self.folder()))
    }

    /// Removes the entries up to a number, which are in the store.
    pub fn remove_folded(&self, up_to: u64) {
        self.shared.lock().tail.remove_folded(up_to);
    }

    /// Removes segments whose entries are folded and below `keep_from`, the number of the oldest pending call: those
    /// that were full for `keep`, and the oldest ones above [`JournalSettings::max_unfolded_bytes`]. Returns their
    /// number. Blocks.
    ///
    /// # Errors
    /// [`JournalError::Folder`].
    pub fn remove_segments(&self, keep_from: u64, keep: Duration) -> Result<usize, JournalError> {
        let JournalSettings { max_unfolded_bytes, segment_bytes, .. } = self.shared.settings;
        let max_full = usize::try_from(max_unfolded_bytes / segment_bytes.max(1)).unwrap_or(usize::MAX);
        let full_before = self.shared.segments.clock.monotonic().checked_sub(keep);
        let paths = {
            let State { chain, tail, .. } = &mut *self.shared.lock();
            chain.take_removable(tail.first_segment(), keep_from, (full_before, max_full), &self.shared.segments)
        };
        for path in &paths {
            reach("before removal of a segment");
            std::fs::remove_file(path).map_err(JournalError::folder(path))?;
            reach("after removal of a segment");
        }
        Ok(paths.len())
    }

    /// Returns the status.
    pub fn status(&self) -> UsageJournalStatus {
        let state = self.shared.lock();
        UsageJournalStatus {
            unfolded_entries: state.tail.len() as u64,
            unfolded_bytes: state.tail.bytes(),
            max_bytes: self.shared.settings.max_unfolded_bytes,
            last_sequence: state.last_sequence(),
            synced_sequence: *self.shared.synced.borrow(),
            is_writable: state.is_writable(),
        }
    }

    /// Returns the bytes reserved for the ends of pending calls.
    pub fn reserved_bytes(&self) -> u64 {
        self.shared.lock().reserved()
    }

    fn check_size(&self, bytes: usize) -> Result<(), JournalError> {
        let max_bytes = self.shared.settings.max_payload_bytes;
        if bytes > max_bytes { Err(JournalError::TooLarge { bytes, max_bytes }) } else { Ok(()) }
    }
}

/// Returns the size of the entry with a reserved payload.
fn reserved_bytes(payload: usize) -> u64 {
    if payload == 0 { 0 } else { entry_bytes(payload) as u64 }
}
