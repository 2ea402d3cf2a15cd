//! The source of a copy: one version of one file, or none.
//!
//! A file system tells of a write by the time of the file's last change, with three exceptions that are closed here.
//! A store into a shared mapping is dated when the page is first written after it was flushed, so the pages are flushed
//! before the time is read. A time has the grain of the kernel's clock, so it must be older than that grain before it
//! is compared. And a file system in memory does not date stores into a mapping at all, so the content is read again.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::copy::PIECE;
use crate::tree::{self, Place, unavailable};
use crate::writers::{self, FileIdentity};

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
pub(crate) enum Opened {
    /// It can be read once it has been left alone for this long.
    After(Duration, Source),
    /// No regular file has the key.
    Absent,
    /// The file has further names, which may lie in another workspace or outside of the store.
    Linked {
        /// All its names.
        links: u64,
    },
}

/// A file of at most this many bytes is read several times, because a writer that goes back and forth between two
/// versions can show the same mixture twice.
const SMALL: u64 = 1024 * 1024;
/// Further readings of a small file.
const SMALL_READINGS: u32 = 4;
/// The time between two readings of a small file.
const BETWEEN_READINGS: Duration = Duration::from_millis(2);

impl Source {
    /// Opens a source and computes how long it must still be left alone.
    pub(crate) fn open(root: &OwnedFd, place: &Place<'_>, quiet: Duration) -> Result<Opened, StoreError> {
        let Some(file) = tree::open_file(root, place)? else { return Ok(Opened::Absent) };
        flush(&file)?;
        let metadata = file.metadata().map_err(unavailable)?;
        let state = State::of(&metadata);
        // Links are counted on the opened file; the path may lead to another one by now.
        if state.links > 1 {
            return Ok(Opened::Linked { links: state.links });
        }
        Ok(Opened::After(remaining_quiet(&metadata, quiet), Self { file, state }))
    }

    /// The size that it had when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.state.size
    }

    /// True where the file is as it was when it was opened, and every later store into it will change its times.
    pub(crate) fn is_unchanged(&self) -> Result<bool, StoreError> {
        flush(&self.file)?;
        Ok(State::of(&self.file.metadata().map_err(unavailable)?) == self.state)
    }

    /// True where the name still leads to the opened file. A file that lost its name here has it elsewhere, as a
    /// link that was removed right after it was opened.
    pub(crate) fn is_named(&self, root: &OwnedFd, place: &Place<'_>) -> Result<bool, StoreError> {
        let Some(named) = tree::open_file(root, place)? else { return Ok(false) };
        Ok(State::of(&named.metadata().map_err(unavailable)?) == self.state)
    }

    /// True where another process can be seen that has the file open for writing.
    pub(crate) fn has_writer(&self) -> bool {
        writers::has_writer(self.state.identity)
    }

    /// True where reading again gives the same content.
    pub(crate) fn reads_as(&mut self, hash: &Hash, is_abandoned: impl Fn() -> bool) -> Result<bool, StoreError> {
        let readings = if self.state.size <= SMALL { SMALL_READINGS } else { 1 };
        for reading in 0..readings {
            if reading > 0 {
                std::thread::sleep(BETWEEN_READINGS);
            }
            match self.read_hash(&is_abandoned)? {
                Some(again) if again == *hash => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// `None` where the caller is gone, or the file has grown.
    fn read_hash(&mut self, is_abandoned: &impl Fn() -> bool) -> Result<Option<Hash>, StoreError> {
        self.file.seek(SeekFrom::Start(0)).map_err(unavailable)?;
        let (mut piece, mut hash, mut seen) = (vec![0; PIECE], Sha256::new(), 0);
        loop {
            let length = read(&mut self.file, &mut piece)?;
            seen += length as u64;
            if length == 0 {
                return Ok(Some(hash.finalize().into()));
            }
            if is_abandoned() || seen > self.state.size {
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

/// Reads a piece; zero bytes are the end.
pub(crate) fn read(file: &mut File, piece: &mut [u8]) -> Result<usize, StoreError> {
    loop {
        match file.read(piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map_err(unavailable),
        }
    }
}

/// Writes the file's dirty pages, so that the next store into a mapping of it is dated.
fn flush(file: &File) -> Result<(), StoreError> {
    match rustix::fs::fdatasync(file) {
        // A file system that cannot be written has no dirty pages.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(unavailable(error)),
    }
}

/// How long the file must still be left alone. The time of the last change cannot be set by its owner.
fn remaining_quiet(metadata: &Metadata, quiet: Duration) -> Duration {
    let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
    let changed = SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(metadata.ctime_nsec().unsigned_abs());
    // A time to come is of another machine's clock: such a file is left alone for the whole period.
    changed.elapsed().map_or(quiet, |age| quiet.saturating_sub(age))
}
