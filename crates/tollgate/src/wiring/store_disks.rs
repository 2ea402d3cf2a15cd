//! The disks under the stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapters_system::LocalDiskSpace;
use domain::error::StoreError;
use domain::system::DiskSpace;

use crate::config::Config;

/// The free space below which a disk counts as full. The database may still have room for a page, but not for a record.
const FULL: u64 = 1 << 20;

/// Returns the free bytes of the disk of the database.
///
/// # Errors
/// The disk is full, or cannot be examined.
pub fn database_room(disk: &dyn DiskSpace) -> Result<u64, StoreError> {
    match disk.free_bytes()? {
        free if free < FULL => Err(StoreError::unavailable(format!("the disk is full: {free} bytes are free"))),
        free => Ok(free),
    }
}

/// The disks under the stores, which may be the same one.
#[derive(Clone)]
pub struct StoreDisks {
    /// The disk of the database.
    pub database: Arc<dyn DiskSpace>,
    /// The disk of the journal.
    pub journal: Arc<dyn DiskSpace>,
    /// The disk of container files and documents; `None` for a bucket.
    pub blobs: Option<Arc<dyn DiskSpace>>,
}

impl StoreDisks {
    /// Returns the disks of the configured paths.
    pub fn new(config: &Config) -> Self {
        let disk = |path: PathBuf| Arc::new(LocalDiskSpace::new(path)) as Arc<dyn DiskSpace>;
        Self {
            database: disk(folder_of(&config.storage.file)),
            journal: disk(config.journal.path.clone()),
            blobs: config.blobs.folder().map(|folder| disk(folder.root.clone())),
        }
    }

    /// Returns the disks with the names of their stores.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Arc<dyn DiskSpace>)> {
        let local = [("database", &self.database), ("journal", &self.journal)];
        local.into_iter().chain(self.blobs.iter().map(|disk| ("blobs", disk)))
    }
}

/// Returns the folder of a file; a bare name is in the working directory.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_bare_name_is_the_working_directory() {
        assert_eq!(folder_of(Path::new("t.db")), Path::new("."));
        assert_eq!(folder_of(Path::new("/data/t.db")), Path::new("/data"));
    }
}
