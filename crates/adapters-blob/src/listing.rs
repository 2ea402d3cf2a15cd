//! Listing of keys in bytewise order, with one folder in memory at a time.

use domain::container::{BlobKey, BlobMeta};
use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::tree::{self, PARTIAL, unavailable};

pub(crate) struct Listing<'a> {
    pub(crate) after: Option<&'a str>,
    pub(crate) limit: usize,
    pub(crate) found: Vec<BlobMeta>,
}

impl Listing<'_> {
    /// Walks a folder whose keys begin with `path`, which is empty or ends with a slash.
    pub(crate) fn walk(&mut self, folder: &OwnedFd, path: &str) -> Result<(), StoreError> {
        for name in self.sorted_names(folder, path)? {
            if self.found.len() >= self.limit {
                return Ok(());
            }
            let key = format!("{path}{name}");
            if let Some(folder_name) = name.strip_suffix('/') {
                if let Some(inner) = tree::open_folder_in(folder, folder_name)? {
                    self.walk(&inner, &key)?;
                }
            } else if let Some(stat) = tree::stat_in(folder, &name)? {
                let (size_bytes, modified_at) = tree::size_and_time(&stat);
                self.found.push(BlobMeta { key: BlobKey::from_listing(key), size_bytes, modified_at });
            }
        }
        Ok(())
    }

    /// Returns the names that may contain keys of this listing. Folder names end with a slash, so that they sort like
    /// the keys inside.
    fn sorted_names(&self, folder: &OwnedFd, path: &str) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(unavailable)? {
            let entry = entry.map_err(unavailable)?;
            // Keys are always UTF-8.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || (path.is_empty() && name == PARTIAL) {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(folder, name)?,
                known => known,
            };
            let name = match kind {
                FileType::Directory => format!("{name}/"),
                FileType::RegularFile => name.to_owned(),
                _ => continue,
            };
            if self.may_follow(&format!("{path}{name}")) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns true if the key, or a key inside the folder, sorts after `after`.
    fn may_follow(&self, key: &str) -> bool {
        self.after.is_none_or(|after| key > after || (key.ends_with('/') && after.starts_with(key)))
    }
}

/// Reads the file type on file systems that omit it in directory entries.
fn kind_of(folder: &OwnedFd, name: &str) -> Result<FileType, StoreError> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => Ok(FileType::Unknown),
        Err(error) => Err(unavailable(error)),
    }
}
