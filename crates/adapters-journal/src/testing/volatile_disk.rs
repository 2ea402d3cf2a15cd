//! A local disk that rejects writes, or loses unsynced ones.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::disk::{Disk, LocalDisk, SegmentFile};
use crate::format::{HEADER_BYTES, Header};

/// A local disk with injected errors. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct VolatileDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_failing: AtomicBool,
    files: Mutex<Vec<Arc<VolatileFile>>>,
}

impl VolatileDisk {
    /// Sets whether writes fail. Syncs of written data still succeed.
    pub fn set_failing(&self, is_failing: bool) {
        self.0.is_failing.store(is_failing, Ordering::SeqCst);
    }

    /// Simulates a power failure while no write is pending: undoes each unsynced write unless `survives` returns true,
    /// and marks every segment as written in the boot `boot`.
    ///
    /// # Errors
    /// The system's error.
    pub fn lose_power(&self, boot: Uuid, mut survives: impl FnMut() -> bool) -> io::Result<()> {
        for file in &*lock(&self.0.files) {
            for UnsyncedWrite { offset, before } in lock(&file.unsynced).drain(..).rev() {
                if !survives() {
                    file.inner.write_at(&before, offset)?;
                }
            }
            let mut header = [0; HEADER_BYTES];
            file.inner.read_at(&mut header, 0)?;
            if let Ok(Header { number, mut origin }) = Header::decode(&header) {
                origin.boot = boot;
                file.inner.write_at(&Header { number, origin }.encode(), 0)?;
            }
        }
        Ok(())
    }
}

impl Disk for VolatileDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        let inner = LocalDisk.create(path, bytes)?;
        let file = Arc::new(VolatileFile { inner, disk: Arc::clone(&self.0), unsynced: Mutex::default() });
        lock(&self.0.files).push(Arc::clone(&file));
        Ok(file)
    }
}

#[derive(Debug)]
struct VolatileFile {
    inner: Arc<dyn SegmentFile>,
    disk: Arc<Shared>,
    unsynced: Mutex<Vec<UnsyncedWrite>>,
}

#[derive(Debug)]
struct UnsyncedWrite {
    offset: u64,
    /// The bytes that the write replaced.
    before: Vec<u8>,
}

impl SegmentFile for VolatileFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.disk.is_failing.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk takes no writes"));
        }
        let mut before = vec![0; bytes.len()];
        self.inner.read_at(&mut before, offset)?;
        let mut unsynced = lock(&self.unsynced);
        self.inner.write_at(bytes, offset)?;
        unsynced.push(UnsyncedWrite { offset, before });
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // A write during the sync may miss it.
        let written = lock(&self.unsynced).len();
        self.inner.sync()?;
        lock(&self.unsynced).drain(..written);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
