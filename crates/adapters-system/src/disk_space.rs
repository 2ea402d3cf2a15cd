//! The free space of a file system.

use std::path::PathBuf;

use domain::error::StoreError;
use domain::system::DiskSpace;
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
}

impl DiskSpace for LocalDiskSpace {
    fn free_bytes(&self) -> Result<u64, StoreError> {
        let status = statvfs(&self.path).map_err(|error| StoreError::unavailable(std::io::Error::from(error)))?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::testing::contract;

    #[test]
    fn local_disk_space_fulfils_contract() {
        contract::disk_space(&LocalDiskSpace::new("/"), &LocalDiskSpace::new("/no/such/folder"));
    }
}
