//! Opens files of a journal folder that another process wrote, or that something put there.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::JournalError;
use crate::format::MAX_READ_PAYLOAD_BYTES;

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
