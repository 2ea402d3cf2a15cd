//! Segment files: the one that is written, and those that another process wrote or that something put there.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::disk::{Disk, SegmentFile};
use crate::format::{HEADER_BYTES, Header, MAX_READ_PAYLOAD_BYTES, Origin};
use crate::settings::JournalError;

const EXTENSION: &str = "segment";

/// A segment that is appended to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn SegmentFile>,
    end: u64,
    capacity: u64,
}

impl Segment {
    /// Creates a segment with all blocks allocated and a synced header.
    pub(crate) fn create(
        disk: &dyn Disk,
        folder: &Path,
        origin: Origin,
        number: u64,
        capacity: u64,
    ) -> io::Result<Self> {
        let path = segment_path(folder, number);
        let file = disk.create(&path, capacity)?;
        let written = file.write_at(&Header { number, origin }.encode(), 0).and_then(|()| file.sync());
        if let Err(error) = written {
            std::fs::remove_file(&path).ok();
            return Err(error);
        }
        Ok(Self { number, file, end: HEADER_BYTES as u64, capacity })
    }

    /// Returns true until the first entry is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == HEADER_BYTES as u64
    }

    /// Returns the remaining bytes.
    pub(crate) fn room(&self) -> u64 {
        self.capacity - self.end
    }

    /// Appends bytes and returns their offset. A failed write is repeated once at the same offset.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.end;
        if bytes.len() as u64 > self.room() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_at(bytes, offset).or_else(|_| self.file.write_at(bytes, offset))?;
        self.end += bytes.len() as u64;
        Ok(offset)
    }
}

/// Returns the path of a segment.
pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016}.{EXTENSION}"))
}

/// Returns the segments of a folder, by number.
pub(crate) fn list_segments(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(number) = number
            && path.extension().is_some_and(|extension| extension == EXTENSION)
        {
            segments.push((number, path));
        }
    }
    segments.sort();
    Ok(segments)
}

/// The largest segment: larger than any that is written, with room for the largest entry.
pub(crate) const MAX_SEGMENT_BYTES: u64 = 2 * MAX_READ_PAYLOAD_BYTES as u64;

/// The reason why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotASegment {
    /// Something else than a regular file.
    Type(&'static str),
    /// More bytes than a segment can have.
    Bytes(u64),
}

/// Reads a segment with the allocated zeros behind its last entry. They may be part of the entry.
///
/// # Errors
/// [`JournalError::Folder`] if the file cannot be read.
pub(crate) fn read_segment_file(path: &Path) -> Result<Result<Vec<u8>, NotASegment>, JournalError> {
    read(path).map_err(JournalError::folder(path))
}

fn read(path: &Path) -> io::Result<Result<Vec<u8>, NotASegment>> {
    let file = match open_regular(path, OFlags::RDONLY)? {
        Ok(file) => file,
        Err(reason) => return Ok(Err(reason)),
    };
    let length = file.metadata()?.len();
    if length > MAX_SEGMENT_BYTES {
        return Ok(Err(NotASegment::Bytes(length)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(MAX_SEGMENT_BYTES).read_to_end(&mut bytes)?;
    Ok(Ok(bytes))
}

/// Opens a file without following a link at its name, and without waiting for the other end of a pipe. Anything but a
/// regular file is not opened: opening a device can have side effects.
pub(crate) fn open_regular(path: &Path, access: OFlags) -> io::Result<Result<File, NotASegment>> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Ok(Err(NotASegment::Type(name_of(found.file_type())))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && access.contains(OFlags::CREATE) => {}
        found => {
            found?;
        }
    }
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        // The file was replaced since.
        Err(Errno::LOOP) => return Ok(Err(NotASegment::Type("a symbolic link"))),
        opened => File::from(opened?),
    };
    let found = file.metadata()?.file_type();
    Ok(if found.is_file() { Ok(file) } else { Err(NotASegment::Type(name_of(found))) })
}

fn name_of(file_type: FileType) -> &'static str {
    if file_type.is_dir() {
        "a folder"
    } else if file_type.is_symlink() {
        "a symbolic link"
    } else if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
