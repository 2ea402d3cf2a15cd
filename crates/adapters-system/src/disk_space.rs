//! The free space of a file system.

use std::path::PathBuf;

use domain::error::StoreError;
use rustix::fs::statvfs;

/// Reads the free space of the file system that contains a path.
#[derive(Debug, Clone)]
pub struct LocalDiskSpace {
    path: PathBuf,
}

impl LocalDiskSpace {
    /// Creates a reader for a path, which is looked up at each reading.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the bytes that this process can allocate, without space that is reserved for other users.
    ///
    /// # Errors
    /// The folder is missing, or its file system does not answer.
    pub fn free_bytes(&self) -> Result<u64, StoreError> {
        let status = statvfs(&self.path).map_err(|error| StoreError::unavailable(std::io::Error::from(error)))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_returns_free_space_and_an_error_for_missing_folder() {
        assert!(LocalDiskSpace::new("/").free_bytes().is_ok_and(|bytes| bytes > 0));
        assert!(LocalDiskSpace::new("/no/such/folder").free_bytes().is_err());
    }
}
