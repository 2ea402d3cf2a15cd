//! The folder of one process: created completely, and locked for the lifetime of the process.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use uuid::Uuid;

use crate::disk::{reach, sync_parent};
use crate::segment::open_regular;
use crate::settings::JournalError;

const LOCK: &str = "lock";
/// The prefix of unfinished folders; an unlocked one belongs to a crashed start.
const UNFINISHED: &str = ".new-";

/// The lock of a journal folder. The system releases it when the process ends for any reason.
#[derive(Debug)]
pub struct FolderLock {
    path: PathBuf,
    _lock: File,
}

/// A locked journal folder of an ended process, so that only one process recovers it.
#[derive(Debug)]
pub struct OrphanFolder {
    /// The process that wrote it.
    pub process: Uuid,
    /// The lock.
    pub lock: FolderLock,
}

impl FolderLock {
    /// Creates the folder of a new process under a temporary name, lets `prepare` fill it, and renames it.
    pub(crate) fn create<T>(
        root: &Path,
        process: Uuid,
        prepare: impl FnOnce(&Path) -> Result<T, JournalError>,
    ) -> Result<(Self, T), JournalError> {
        let create = |folder: &Path, recursive| {
            let created = DirBuilder::new().recursive(recursive).mode(0o700).create(folder);
            created.map_err(JournalError::folder(folder))
        };
        create(root, true)?;
        let unfinished = root.join(format!("{UNFINISHED}{process}"));
        let lock = {
            let _root = lock_root(root)?;
            create(&unfinished, false)?;
            reach("folder created");
            Self::open(&unfinished)
        };
        let (lock, prepared) = match lock.and_then(|lock| Ok((lock, prepare(&unfinished)?))) {
            Ok(created) => created,
            Err(error) => {
                fs::remove_dir_all(&unfinished).ok();
                return Err(error);
            }
        };
        let path = root.join(process.to_string());
        reach("before rename of the folder");
        fs::rename(&unfinished, &path)
            .inspect(|()| reach("after rename of the folder"))
            .and_then(|()| sync_parent(&path))
            .map_err(JournalError::folder(&path))?;
        Ok((Self { path, ..lock }, prepared))
    }

    /// Locks an existing folder.
    ///
    /// # Errors
    /// [`JournalError::Locked`] while another process holds the lock.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(LOCK);
        let lock = open_lock(&path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: folder.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(JournalError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(JournalError::folder(path)(error)),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    /// [`JournalError::Folder`].
    pub fn remove(self) -> Result<(), JournalError> {
        reach("before removal of an unfinished folder");
        fs::remove_dir_all(&self.path).and_then(|()| sync_parent(&self.path)).map_err(JournalError::folder(&self.path))
    }
}

/// Locks and returns the folders of ended processes, and removes those of crashed starts. Does not touch those that
/// `is_foreign` returns true for.
///
/// # Errors
/// [`JournalError::Folder`]. A missing root has no orphans.
pub fn find_orphans(
    root: &Path,
    is_foreign: impl Fn(Uuid, &Path) -> Result<bool, JournalError>,
) -> Result<Vec<OrphanFolder>, JournalError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(JournalError::folder(root)(error)),
    };
    let _root = lock_root(root)?;
    let mut orphans = Vec::new();
    for entry in entries {
        let path = entry.map_err(JournalError::folder(root))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let unfinished = name.strip_prefix(UNFINISHED);
        let Ok(process) = Uuid::parse_str(unfinished.unwrap_or(name)) else { continue };
        let opened = match is_foreign(process, &path) {
            Ok(true) => continue,
            Ok(false) => FolderLock::open(&path),
            Err(error) => Err(error),
        };
        match opened {
            Ok(lock) if unfinished.is_some() => lock.remove()?,
            Ok(lock) => orphans.push(OrphanFolder { process, lock }),
            Err(JournalError::Locked(_)) => {}
            // Since the listing, its process renamed it or another process removed it.
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    orphans.sort_by_key(|orphan| orphan.process);
    Ok(orphans)
}

/// Returns the folders that running processes have locked, with their processes.
///
/// # Errors
/// [`JournalError::Folder`]. A missing root has none.
pub(crate) fn find_live(root: &Path) -> Result<Vec<(Uuid, PathBuf)>, JournalError> {
    if !root.exists() {
        return Ok(Vec::new());
    }
    let _root = lock_root(root)?;
    let mut live = Vec::new();
    for entry in fs::read_dir(root).map_err(JournalError::folder(root))? {
        let path = entry.map_err(JournalError::folder(root))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(process) = name.and_then(|name| Uuid::parse_str(name).ok()) else { continue };
        if matches!(FolderLock::open(&path), Err(JournalError::Locked(_))) {
            live.push((process, path));
        }
    }
    Ok(live)
}

/// Locks the root briefly, so that no other process looks for orphans between the creation of a folder and its lock.
fn lock_root(root: &Path) -> Result<File, JournalError> {
    let path = root.join(LOCK);
    let file = open_lock(&path)?;
    file.lock().map_err(JournalError::folder(&path))?;
    Ok(file)
}

/// Opens a lock file, or creates it.
fn open_lock(path: &Path) -> Result<File, JournalError> {
    let opened = open_regular(path, OFlags::WRONLY | OFlags::CREATE).map_err(JournalError::folder(path))?;
    opened.map_err(|_| JournalError::folder(path)(io::Error::other("it is no regular file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_own(root: &Path) -> Result<Vec<OrphanFolder>, JournalError> {
        find_orphans(root, |_, _| Ok(false))
    }

    #[test]
    fn folder_is_locked_until_lock_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let process = Uuid::from_u128(1);
        let (lock, ()) = FolderLock::create(root.path(), process, |_| Ok(())).unwrap();
        assert!(matches!(FolderLock::open(lock.path()), Err(JournalError::Locked(_))));
        assert!(find_own(root.path()).unwrap().is_empty());
        drop(lock);
        let orphans = find_own(root.path()).unwrap();
        assert_eq!(orphans.iter().map(|orphan| orphan.process).collect::<Vec<_>>(), [process]);
        assert!(find_own(root.path()).unwrap().is_empty(), "one process recovers it");
    }

    #[test]
    fn find_orphans_removes_unfinished_folder() {
        let root = tempfile::tempdir().unwrap();
        let failed = FolderLock::create(root.path(), Uuid::from_u128(1), |_| {
            Err::<(), _>(JournalError::Write(std::io::ErrorKind::StorageFull.into()))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "the lock of the root");
        let died = root.path().join(format!("{UNFINISHED}{}", Uuid::from_u128(2)));
        fs::create_dir(&died).unwrap();
        assert!(find_own(root.path()).unwrap().is_empty());
        assert!(!died.exists());
    }

    #[test]
    fn find_orphans_ignores_folder_removed_after_listing() {
        let root = tempfile::tempdir().unwrap();
        for name in [Uuid::from_u128(1).to_string(), format!("{UNFINISHED}{}", Uuid::from_u128(2))] {
            std::os::unix::fs::symlink(root.path().join("absent"), root.path().join(name)).unwrap();
        }
        assert!(find_own(root.path()).unwrap().is_empty());
    }

    #[test]
    fn find_orphans_ignores_foreign_names() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("quarantine")).unwrap();
        fs::write(root.path().join("README"), "").unwrap();
        assert!(find_own(root.path()).unwrap().is_empty());
        assert!(root.path().join("quarantine").exists() && root.path().join("README").exists());
        assert!(find_own(&root.path().join("absent")).unwrap().is_empty());
    }
}
