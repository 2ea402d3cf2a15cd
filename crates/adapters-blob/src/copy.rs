//! Copy of a file in pieces, with its hash, and the partial files of writes.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use domain::container::{CopiedBlob, CopyOutcome, PutBlobError};
use domain::error::StoreError;
use domain::text::hex;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::source::{BUFFER_BYTES, Hash, Source, read};
use crate::tree::{self, CreatedFolders, ObjectPath, unavailable};

/// A flag that cancels a running copy.
#[derive(Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels a copy on drop.
pub(crate) struct CancelOnDrop(pub(crate) CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct CopyTask<'a> {
    pub(crate) root: &'a OwnedFd,
    pub(crate) partial: &'a Arc<OwnedFd>,
    pub(crate) from: ObjectPath<'a>,
    pub(crate) to: ObjectPath<'a>,
    pub(crate) cancelled: CancelFlag,
}

impl CopyTask<'_> {
    /// Copies a source that was unchanged for the quiet period since it was opened. `between` is called after each
    /// piece.
    pub(crate) fn run(self, mut source: Source, mut between: impl FnMut()) -> Result<CopyOutcome, StoreError> {
        if !source.is_unchanged()? || !source.is_named(self.root, &self.from)? {
            return Ok(CopyOutcome::SourceChanged);
        }
        let mut target = PartialFile::create(self.partial)?;
        let Some((hash, head)) = self.transfer(&mut source, &mut target.file, &mut between)? else {
            return Ok(CopyOutcome::SourceChanged);
        };
        // The second read comes after the sync of the copy, which gives a concurrent writer time to become visible.
        target.file.sync_all().map_err(unavailable)?;
        let is_same = source.reads_as(&hash, || self.cancelled.is_set())?;
        if self.cancelled.is_set() {
            return Err(abandoned());
        }
        // A writer that pauses within a version changes neither the time nor the content.
        if !is_same || source.has_writer() || !source.is_unchanged()? {
            return Ok(CopyOutcome::SourceChanged);
        }
        target.finish(self.root, &self.to)?;
        Ok(CopyOutcome::Copied(CopiedBlob { sha256: hex(&hash), head }))
    }

    /// Copies the bytes; `None` if the length of the source differs from the expected one.
    fn transfer(
        &self,
        source: &mut Source,
        target: &mut File,
        between: &mut impl FnMut(),
    ) -> Result<Option<(Hash, Vec<u8>)>, StoreError> {
        let mut piece = vec![0; BUFFER_BYTES];
        let (mut hash, mut head, mut seen) = (Sha256::new(), Vec::new(), 0_u64);
        loop {
            if self.cancelled.is_set() {
                return Err(abandoned());
            }
            let length = read(&mut source.file, &mut piece)?;
            let bytes = &piece[..length];
            if bytes.is_empty() {
                break;
            }
            seen += length as u64;
            if seen > source.size() {
                return Ok(None);
            }
            let wanted = CopiedBlob::HEAD_BYTES - head.len();
            head.extend_from_slice(&bytes[..wanted.min(length)]);
            hash.update(bytes);
            target.write_all(bytes).map_err(unavailable)?;
            between();
        }
        Ok((seen == source.size()).then(|| (hash.finalize().into(), head)))
    }
}

fn abandoned() -> StoreError {
    StoreError::unavailable("the copy was cancelled")
}

/// A partial file. Dropping it removes it.
pub(crate) struct PartialFile {
    folder: Arc<OwnedFd>,
    name: String,
    pub(crate) file: File,
    finished: bool,
}

/// The most attempts to rename a file into a folder that is removed meanwhile.
const MAX_ATTEMPTS: usize = 16;

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl PartialFile {
    pub(crate) fn create(folder: &Arc<OwnedFd>) -> Result<Self, StoreError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            match rustix::fs::openat(folder, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => {
                    return Ok(Self { folder: Arc::clone(folder), name, file: File::from(fd), finished: false });
                }
                // Left behind by an earlier process with the same id.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(unavailable(error)),
            }
        }
    }

    /// Syncs the file, renames it to its final name, and syncs the folder.
    pub(crate) fn finish(mut self, root: &OwnedFd, place: &ObjectPath<'_>) -> Result<(), PutBlobError> {
        tree::give_to_owner(&self.file, root)?;
        self.file.sync_all().map_err(unavailable)?;
        for _ in 0..MAX_ATTEMPTS {
            let mut created = CreatedFolders::default();
            let Some(target) = tree::make_folder(root, &place.folders, &mut created)? else { continue };
            match rustix::fs::renameat(&self.folder, &self.name, &target, place.name) {
                Ok(()) => {}
                // The deletion of another file removed the empty folder.
                Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => return Err(PutBlobError::Occupied),
                Err(error) => return Err(unavailable(error).into()),
            }
            self.finished = true;
            created.keep();
            return Ok(rustix::fs::fsync(&target).map_err(unavailable)?);
        }
        Err(StoreError::unavailable("the folder of the file is removed again and again").into())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished
            && let Err(error) = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())
        {
            tracing::warn!(error = %error, "partial file not removed; left to the sweeper");
        }
    }
}

/// Removes files that were not modified for `older_than`; returns their number.
pub(crate) fn sweep(folder: &OwnedFd, older_than: Duration) -> Result<u64, StoreError> {
    let mut removed = 0;
    for entry in Dir::read_from(folder).map_err(unavailable)? {
        let entry = entry.map_err(unavailable)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Some(stat) = tree::stat_in(folder, name)? else { continue };
        let age = std::time::SystemTime::from(tree::modified_at(&stat)).elapsed().unwrap_or_default();
        if age < older_than {
            continue;
        }
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) => removed += 1,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(unavailable(error)),
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
