//! The store's folder and the check that its path still leads to it.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use domain::error::StoreError;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use crate::tree::unavailable;

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
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(unavailable)?;
        create_durably(&path).map_err(unavailable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(rustix::fs::open(&path, flags, Mode::empty()).map_err(unavailable)?);
        let identity = identity_of(&folder.metadata().map_err(unavailable)?);
        Ok(Self { path, folder: folder.into(), identity, was_missing: AtomicBool::new(false) })
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
