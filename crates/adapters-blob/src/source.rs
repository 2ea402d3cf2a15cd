//! The source of a copy: one version of a file.
//!
//! The change time of a file reveals writes, with three exceptions that this module covers. A store into a shared
//! mapping is only dated when the page is first written after a flush, so pages are flushed before the time is read.
//! Times have the granularity of the kernel's clock, so they must be older than that before a comparison. File systems
//! in memory never date stores into a mapping, so the content is read again.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::fs::{major, minor};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::tree::{self, ObjectPath, unavailable};

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
        has_writer(self.state.identity)
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

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Returns true if another visible process has the file open for writing, or has a writable shared mapping of it.
pub(crate) fn has_writer(file: FileIdentity) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let own = std::process::id().to_string();
    processes.flatten().any(|process| {
        let name = process.file_name();
        let is_process =
            name.to_str().is_some_and(|name| name != own && name.bytes().all(|byte| byte.is_ascii_digit()));
        is_process && (has_open(&process.path(), file) || has_mapped(&process.path(), file))
    })
}

fn has_open(process: &Path, file: FileIdentity) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        // Sockets and pipes have no absolute path; most descriptors of a server are of that kind.
        let is_file = fs::read_link(descriptor.path()).is_ok_and(|target| target.is_absolute());
        let is_same = || {
            fs::metadata(descriptor.path()).is_ok_and(|found| (found.dev(), found.ino()) == (file.device, file.inode))
        };
        is_file && is_same() && is_writable(&process.join("fdinfo").join(descriptor.file_name()))
    })
}

/// Reads the access mode: the lowest octal digit of the flags is 0 for read-only.
fn is_writable(fdinfo: &Path) -> bool {
    let Ok(text) = fs::read_to_string(fdinfo) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| matches!(flags.trim().bytes().last(), Some(b'1' | b'2' | b'5' | b'6')))
}

fn has_mapped(process: &Path, file: FileIdentity) -> bool {
    let Ok(maps) = File::open(process.join("maps")) else { return false };
    BufReader::new(maps).lines().map_while(Result::ok).any(|line| is_shared_mapping(&line, file))
}

/// Parses a line `from-to rwxs offset major:minor inode path`.
fn is_shared_mapping(line: &str, file: FileIdentity) -> bool {
    let mut columns = line.split_ascii_whitespace().skip(1);
    let (Some(access), _, Some(device), Some(inode)) = (columns.next(), columns.next(), columns.next(), columns.next())
    else {
        return false;
    };
    let own_device = format!("{:02x}:{:02x}", major(file.device), minor(file.device));
    access.as_bytes().get(1) == Some(&b'w')
        && access.ends_with('s')
        && inode.parse() == Ok(file.inode)
        && device == own_device
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn shared_writable_mapping_is_recognised() {
        let file = FileIdentity { device: rustix::fs::makedev(0xfe, 3), inode: 4_711 };
        for (line, expected) in [
            ("7f00-7f10 rw-s 00000000 fe:03 4711      /a b", true),
            ("7f00-7f10 -w-s 00000000 fe:03 4711 /a", true),
            ("7f00-7f10 r--s 00000000 fe:03 4711 /a", false),
            ("7f00-7f10 rw-p 00000000 fe:03 4711 /a", false),
            ("7f00-7f10 rw-s 00000000 fe:03 4712 /a", false),
            ("7f00-7f10 rw-s 00000000 fe:04 4711 /a", false),
            ("7f00-7f10 rw-p 00000000 00:00 0", false),
            ("", false),
        ] {
            assert_eq!(is_shared_mapping(line, file), expected, "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_with_file_open_for_writing_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"content").unwrap();
        let found = fs::metadata(&path).unwrap();
        let file = FileIdentity { device: found.dev(), inode: found.ino() };
        assert!(!has_writer(file));
        for (redirection, expected) in [("exec 3<", false), ("exec 3>>", true), ("exec 3<>", true)] {
            let script = format!("{redirection}\"$1\"; echo opened; read line");
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "opened\n");
            assert_eq!(has_writer(file), expected, "{redirection}");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert!(!has_writer(file), "it was closed");
    }
}
