//! The source of a copy: one version of a file.
//!
//! The change time of a file reveals writes, with three exceptions that this module covers. A store into a shared
//! mapping is only dated when the page is first written after a flush, so pages are flushed before the time is read.
//! Times have the granularity of the kernel's clock, so they must be older than that before a comparison. File systems
//! in memory never date stores into a mapping, so the content is read again.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::tree::{self, ObjectPath, unavailable};
use crate::writers::{self, FileIdentity};

/// The bytes of a source that are read at once.
pub(crate) const BUFFER_BYTES: usize = 512 * 1024;

/// A SHA-256.
pub(crate) type Hash = [u8; 32];

/// An opened source.
pub(crate) struct Source {
    pub(crate) file: File,
    state: State,
}

/// The members of a file's metadata that change with its content, its names or its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    identity: FileIdentity,
    links: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The result of opening a source.
pub(crate) enum OpenResult {
    /// The file can be read after it was unchanged for this long.
    After(Duration, Source),
    /// No regular file has the key.
    Absent,
    /// The file has more names, which may be in another workspace or outside the store.
    Linked {
        /// The number of names.
        links: u64,
    },
}

/// Files up to this size are read several times, because a writer that alternates between two versions can show the
/// same mixture twice.
const SMALL: u64 = 1024 * 1024;
/// The number of further reads of a small file.
const SMALL_READINGS: u32 = 4;
/// The time between two reads of a small file.
const BETWEEN_READINGS: Duration = Duration::from_millis(2);

impl Source {
    /// Opens a source and computes the remaining quiet time.
    pub(crate) fn open(root: &OwnedFd, place: &ObjectPath<'_>, quiet: Duration) -> Result<OpenResult, StoreError> {
        let Some(file) = tree::open_file(root, place)? else { return Ok(OpenResult::Absent) };
        flush(&file)?;
        let metadata = file.metadata().map_err(unavailable)?;
        let state = State::of(&metadata);
        // Links are counted on the opened file, because the path may lead to another one by now.
        if state.links > 1 {
            return Ok(OpenResult::Linked { links: state.links });
        }
        Ok(OpenResult::After(remaining_quiet(&metadata, quiet), Self { file, state }))
    }

    /// Returns the size at the time of opening.
    pub(crate) fn size(&self) -> u64 {
        self.state.size
    }

    /// Returns true if the file is unchanged since it was opened, and every later store into it will change its times.
    pub(crate) fn is_unchanged(&self) -> Result<bool, StoreError> {
        flush(&self.file)?;
        Ok(State::of(&self.file.metadata().map_err(unavailable)?) == self.state)
    }

    /// Returns true if the name still leads to the opened file. Otherwise the file may have another name, for example
    /// through a link that was removed after the opening.
    pub(crate) fn is_named(&self, root: &OwnedFd, place: &ObjectPath<'_>) -> Result<bool, StoreError> {
        let Some(named) = tree::open_file(root, place)? else { return Ok(false) };
        Ok(State::of(&named.metadata().map_err(unavailable)?) == self.state)
    }

    /// Returns true if a visible process has the file open for writing.
    pub(crate) fn has_writer(&self) -> bool {
        writers::has_writer(self.state.identity)
    }

    /// Returns true if another read yields the same content.
    pub(crate) fn reads_as(&mut self, hash: &Hash, is_cancelled: impl Fn() -> bool) -> Result<bool, StoreError> {
        let readings = if self.state.size <= SMALL { SMALL_READINGS } else { 1 };
        for reading in 0..readings {
            if reading > 0 {
                std::thread::sleep(BETWEEN_READINGS);
            }
            match self.read_hash(&is_cancelled)? {
                Some(again) if again == *hash => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Reads and hashes the file; `None` if the caller is gone or the file has grown.
    fn read_hash(&mut self, is_cancelled: &impl Fn() -> bool) -> Result<Option<Hash>, StoreError> {
        self.file.seek(SeekFrom::Start(0)).map_err(unavailable)?;
        let (mut piece, mut hash, mut seen) = (vec![0; BUFFER_BYTES], Sha256::new(), 0);
        loop {
            let length = read(&mut self.file, &mut piece)?;
            seen += length as u64;
            if length == 0 {
                return Ok(Some(hash.finalize().into()));
            }
            if is_cancelled() || seen > self.state.size {
                return Ok(None);
            }
            hash.update(&piece[..length]);
        }
    }
}

impl State {
    fn of(metadata: &Metadata) -> Self {
        Self {
            identity: FileIdentity { device: metadata.dev(), inode: metadata.ino() },
            links: metadata.nlink(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Reads a piece; zero bytes mean the end of the file.
pub(crate) fn read(file: &mut File, piece: &mut [u8]) -> Result<usize, StoreError> {
    loop {
        match file.read(piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map_err(unavailable),
        }
    }
}

/// Writes the file's dirty pages, so that the next store into a mapping is dated.
fn flush(file: &File) -> Result<(), StoreError> {
    match rustix::fs::fdatasync(file) {
        // A read-only file system has no dirty pages.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(unavailable(error)),
    }
}

/// Returns the remaining quiet time. Owners cannot set the change time.
fn remaining_quiet(metadata: &Metadata, quiet: Duration) -> Duration {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
    let changed = SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(metadata.ctime_nsec().unsigned_abs());
    // A time in the future comes from another machine's clock: wait for the whole period.
    changed.elapsed().map_or(quiet, |age| quiet.saturating_sub(age))
}
