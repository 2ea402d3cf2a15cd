//! The check that the database path still leads to the opened file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::error::StoreError;

use crate::location::Location;

/// Compares the opened file with the file at its path. SQLite continues to write to a removed or replaced file, and
/// those writes are lost when the process ends.
pub(crate) struct DatabaseFile {
    path: PathBuf,
    opened: Option<Identity>,
    was_missing: AtomicBool,
}

/// Device and inode.
type Identity = (u64, u64);

impl DatabaseFile {
    /// Remembers the file that was just opened.
    pub(crate) fn new(location: &Location) -> Self {
        // Later changes of the working directory must not matter.
        let path = std::path::absolute(&location.path).unwrap_or_else(|_| location.path.clone());
        Self { opened: identity(&path), path, was_missing: AtomicBool::new(false) }
    }

    /// Fails while the path leads to another file or to none. Logs each change.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let is_missing = identity(&self.path) != self.opened;
        if self.was_missing.swap(is_missing, Ordering::Relaxed) != is_missing {
            let file = self.path.display();
            if is_missing {
                tracing::error!(%file, "database file was removed or replaced; every operation is rejected until it is back");
            } else {
                tracing::info!(%file, "database file is back");
            }
        }
        if is_missing {
            return Err(StoreError::unavailable(format!(
                "the database file {} was removed or replaced; move the same file back, or restart to use the new one",
                self.path.display()
            )));
        }
        Ok(())
    }
}

#[cfg(unix)]
fn identity(path: &std::path::Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &std::path::Path) -> Option<Identity> {
    path.exists().then_some((0, 0))
}
