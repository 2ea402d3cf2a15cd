//! Partial files: each has a unique name in a folder beside the objects, on the same file system, and gets its final
//! name once it is complete and durable.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::tree::{self, CreatedFolders, ObjectPath, unavailable};

/// A partial file. Dropping it removes it.
pub(crate) struct PartialFile {
    folder: Arc<OwnedFd>,
    name: String,
    pub(crate) file: File,
    finished: bool,
}

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
    pub(crate) fn finish(mut self, root: &OwnedFd, place: &ObjectPath<'_>) -> Result<(), StoreError> {
        tree::give_to_owner(&self.file, root)?;
        self.file.sync_all().map_err(unavailable)?;
        let mut created = CreatedFolders::default();
        let target = tree::make_folder(root, &place.folders, &mut created)?;
        rustix::fs::renameat(&self.folder, &self.name, &target, place.name).map_err(unavailable)?;
        self.finished = true;
        created.keep();
        rustix::fs::fsync(&target).map_err(unavailable)
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
        let (_, modified_at) = tree::size_and_time(&stat);
        let age = std::time::SystemTime::from(modified_at).elapsed().unwrap_or_default();
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
