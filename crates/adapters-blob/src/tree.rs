//! The folder tree, opened name by name so that links are never followed, and the check that the path of its root still
//! leads to it.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use domain::container::{BlobKey, BlobMeta, PutBlobError};
use domain::error::StoreError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;

/// The folder of partial files. No key leads into it.
pub(crate) const PARTIAL: &str = ".partial";

const FOLDER_MODE: Mode = Mode::RWXU;

/// A parsed key: the names of its folders, and its file name.
pub(crate) struct ObjectPath<'a> {
    pub(crate) folders: Vec<&'a str>,
    pub(crate) name: &'a str,
}

impl<'a> ObjectPath<'a> {
    /// Parses a key; `None` if no file can have it.
    pub(crate) fn of(key: &'a str) -> Option<Self> {
        let mut folders = segments(key)?;
        let name = folders.pop()?;
        Some(Self { folders, name })
    }
}

/// Splits a path into names; `None` if a name is invalid or the path leads into the partial files.
pub(crate) fn segments(path: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = path.split('/').collect();
    let fits = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\0');
    (names.iter().all(fits) && names[0] != PARTIAL).then_some(names)
}

/// Returns true for errors that mean "no such regular file", as opposed to unreadable files.
fn says_absent(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::NXIO | Errno::INVAL)
}

fn present<T>(result: rustix::io::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if says_absent(error) => Ok(None),
        Err(error) => Err(unavailable(error)),
    }
}

pub(crate) fn unavailable(error: impl Into<io::Error>) -> StoreError {
    StoreError::unavailable(error.into())
}

/// Opens a folder inside another one. Links to folders count as missing.
pub(crate) fn open_folder_in(parent: impl AsFd, name: &str) -> Result<Option<OwnedFd>, StoreError> {
    present(open_only_folder(parent, name))
}

fn open_only_folder(parent: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens the folder at the end of `names`.
pub(crate) fn open_folder(root: &OwnedFd, names: &[&str]) -> Result<Option<OwnedFd>, StoreError> {
    let mut at = root.try_clone().map_err(unavailable)?;
    for name in names {
        match open_folder_in(&at, name)? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Folders that were created for a file. They are removed on drop unless the file got its place, if they are empty.
#[derive(Default)]
pub(crate) struct CreatedFolders(Vec<(OwnedFd, String)>);

impl CreatedFolders {
    /// Keeps the folders.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        while let Some((parent, name)) = self.0.pop() {
            // Another process may use the folder already.
            if rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
        }
    }
}

/// The folders of a key that stay when they are empty: `containers/<workspace>/<container>` is a sandbox's own folder.
const KEPT_FOLDERS: usize = 3;

/// Removes the folders at the end of `names` that are empty, the innermost first.
pub(crate) fn remove_empty_folders(root: &OwnedFd, names: &[&str]) -> Result<(), StoreError> {
    for depth in (KEPT_FOLDERS..names.len()).rev() {
        let Some(parent) = open_folder(root, &names[..depth])? else { continue };
        match rustix::fs::unlinkat(&parent, names[depth], AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Others use it, or it is no folder any more.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Opens the folder at the end of `names`, and creates missing folders durably. `None` if one was removed meanwhile, by the
/// deletion of another file.
pub(crate) fn make_folder(
    root: &OwnedFd,
    names: &[&str],
    created: &mut CreatedFolders,
) -> Result<Option<OwnedFd>, PutBlobError> {
    let mut at = root.try_clone().map_err(unavailable)?;
    for name in names {
        let found = open_folder_in(&at, name)?;
        let next = if found.is_some() { found } else { make_folder_in(root, &at, name, created)? };
        let Some(next) = next else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

fn make_folder_in(
    root: &OwnedFd,
    parent: &OwnedFd,
    name: &str,
    created: &mut CreatedFolders,
) -> Result<Option<OwnedFd>, PutBlobError> {
    let is_new = match rustix::fs::mkdirat(parent, name, FOLDER_MODE) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(unavailable(error).into()),
    };
    if is_new {
        created.0.push((parent.try_clone().map_err(unavailable)?, name.to_owned()));
    }
    rustix::fs::fsync(parent).map_err(unavailable)?;
    let folder = match open_only_folder(parent, name) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) if says_absent(error) => return Err(PutBlobError::Occupied),
        Err(error) => return Err(unavailable(error).into()),
    };
    if is_new {
        give_to_owner(&folder, root)?;
    }
    Ok(Some(folder))
}

/// Gives a new file or folder to the owner of the store's folder. Only root can do so, and must: the server of another
/// user could not read what a command of root stores.
pub(crate) fn give_to_owner(created: impl AsFd, root: &OwnedFd) -> Result<(), StoreError> {
    let (own, owner) = (fstat(&created).map_err(unavailable)?, fstat(root).map_err(unavailable)?);
    if own.st_uid != 0 || owner.st_uid == 0 {
        return Ok(());
    }
    std::os::unix::fs::fchown(created, Some(owner.st_uid), Some(owner.st_gid)).map_err(unavailable)
}

/// Returns the metadata of a regular file, without following links and without opening it: opening a device or a pipe
/// can block or have side effects.
pub(crate) fn stat_in(folder: impl AsFd, name: &str) -> Result<Option<Stat>, StoreError> {
    let stat = present(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))?;
    Ok(stat.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile))
}

/// Opens a regular file for reading.
pub(crate) fn open_file(root: &OwnedFd, place: &ObjectPath<'_>) -> Result<Option<File>, StoreError> {
    let Some(folder) = open_folder(root, &place.folders)? else { return Ok(None) };
    if stat_in(&folder, place.name)?.is_none() {
        return Ok(None);
    }
    // The file may have been replaced since: opening a pipe must not block, and the type is checked again.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Some(fd) = present(rustix::fs::openat(&folder, place.name, flags, Mode::empty()))? else { return Ok(None) };
    let file = File::from(fd);
    Ok(file.metadata().map_err(unavailable)?.is_file().then_some(file))
}

/// Returns the time of the last write.
#[allow(clippy::useless_conversion, reason = "the types of these members differ between systems")]
pub(crate) fn modified_at(stat: &Stat) -> DateTime<Utc> {
    let seconds = i64::try_from(stat.st_mtime).unwrap_or_default();
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    DateTime::from_timestamp(seconds, nanoseconds).unwrap_or_default()
}

/// Returns the metadata of an object.
#[allow(clippy::useless_conversion, reason = "the types of these members differ between systems")]
pub(crate) fn meta(key: BlobKey, stat: &Stat) -> BlobMeta {
    BlobMeta {
        key,
        size_bytes: u64::try_from(stat.st_size).unwrap_or_default(),
        modified_at: modified_at(stat),
        links: u64::try_from(stat.st_nlink).unwrap_or(u64::MAX),
    }
}

/// The folder of the store: opened once, and compared with its path before and after each operation.
pub(crate) struct Root {
    path: PathBuf,
    pub(crate) folder: OwnedFd,
    /// Device and inode.
    identity: (u64, u64),
    was_missing: AtomicBool,
}

impl Root {
    /// Opens the folder, and creates it durably if it is missing. `path` itself may be a link.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        create_durably(&std::path::absolute(path).map_err(unavailable)?).map_err(unavailable)?;
        Self::open(path)?.ok_or_else(|| unavailable(Errno::NOENT))
    }

    /// Opens the folder; `None` if it is missing. `path` itself may be a link.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = std::path::absolute(path).map_err(unavailable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened.map_err(unavailable)?),
        };
        let identity = identity_of(&folder.metadata().map_err(unavailable)?);
        Ok(Some(Self { path, folder: folder.into(), identity, was_missing: AtomicBool::new(false) }))
    }

    /// Fails while the path leads to another folder or to none. Logs each change.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let found = std::fs::metadata(&self.path).ok().map(|metadata| identity_of(&metadata));
        let is_missing = found != Some(self.identity);
        if self.was_missing.swap(is_missing, Ordering::Relaxed) != is_missing {
            let folder = self.path.display();
            if is_missing {
                tracing::error!(%folder, "blobs folder was moved or replaced; promotions are rejected until it is back");
            } else {
                tracing::info!(%folder, "blobs folder is back");
            }
        }
        if is_missing {
            return Err(StoreError::unavailable(format!(
                "the blobs folder {} was moved or replaced; move it back, or restart to use the new one",
                self.path.display()
            )));
        }
        Ok(())
    }
}

fn identity_of(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Creates a folder and its parents durably, for the owner only.
fn create_durably(path: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_folders_are_removed_unless_kept_or_used() {
        let folder = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(File::open(folder.path()).unwrap());
        let make = |names: &[&str]| {
            let mut created = CreatedFolders::default();
            make_folder(&root, names, &mut created).unwrap();
            created
        };
        make(&["kept"]).keep();
        drop(make(&["kept", "a", "b"]));
        assert_eq!(std::fs::read_dir(folder.path().join("kept")).unwrap().count(), 0);
        let used = make(&["kept", "used", "empty"]);
        std::fs::write(folder.path().join("kept/used/file"), "x").unwrap();
        drop(used);
        assert!(folder.path().join("kept/used/file").exists() && !folder.path().join("kept/used/empty").exists());
    }
}
