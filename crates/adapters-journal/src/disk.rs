//! Files of segments on the local disk, and the points at which a test kills the process.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

#[cfg(feature = "fault-points")]
pub(crate) use hook::reach;
#[cfg(feature = "fault-points")]
pub use hook::set_fault_hook;

/// An open segment file.
pub trait SegmentFile: fmt::Debug + Send + Sync {
    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// The system's error; part of the bytes may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills a buffer from an offset.
    ///
    /// # Errors
    /// The system's error, or `UnexpectedEof`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Syncs all written data to the disk (`fdatasync`).
    ///
    /// # Errors
    /// The system's error. Unsynced data may be lost without another error, so the call must not be repeated.
    fn sync(&self) -> io::Result<()>;
}

/// Creates segment files.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file with all blocks allocated, and syncs its name.
    ///
    /// # Errors
    /// The system's error, for example a full disk.
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn SegmentFile>>;
}

/// The local disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn create(&self, path: &Path, bytes: u64) -> io::Result<Arc<dyn SegmentFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        reach("segment created");
        let allocated = allocate(&file, bytes).and_then(|()| file.sync_all()).and_then(|()| sync_parent(path));
        reach("segment allocated");
        match allocated {
            Ok(()) => Ok(Arc::new(LocalFile(file))),
            Err(error) => {
                // An incomplete file would be taken for a segment at the next attempt.
                std::fs::remove_file(path).ok();
                Err(error)
            }
        }
    }
}

/// Allocates the blocks of a file; writes zeros if the file system cannot allocate.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        allocated => return Ok(allocated?),
    }
    let mut offset = 0;
    while offset < bytes {
        let length = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&ZEROS[..length], offset)?;
        offset += length as u64;
    }
    Ok(())
}

/// Syncs the parent folder of a path, so that a created, renamed or removed name survives a power failure.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[derive(Debug)]
struct LocalFile(File);

impl SegmentFile for LocalFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        reach("before write");
        #[cfg(feature = "fault-points")]
        {
            self.0.write_all_at(&bytes[..bytes.len() / 2], offset)?;
            reach("half a write");
        }
        let written = self.0.write_all_at(bytes, offset);
        reach("after write");
        written
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        reach("before sync");
        let synced = self.0.sync_data();
        reach("after sync");
        synced
    }
}

#[cfg(feature = "fault-points")]
mod hook {
    use std::sync::OnceLock;

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// Sets a function that receives the name of each reached point. Only the first call has an effect.
    pub fn set_fault_hook(hook: fn(&'static str)) {
        HOOK.set(hook).ok();
    }

    pub(crate) fn reach(point: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(point);
        }
    }
}

#[cfg(not(feature = "fault-points"))]
#[inline]
pub(crate) fn reach(_: &'static str) {}
