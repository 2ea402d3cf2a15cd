//! The contract of [`DiskSpace`].

use crate::system::DiskSpace;

/// Checks a disk with free space, and one whose folder is missing.
///
/// # Panics
/// The contract is violated.
pub fn disk_space(existing: &dyn DiskSpace, missing: &dyn DiskSpace) {
    assert!(existing.free_bytes().is_ok_and(|bytes| bytes > 0), "free space is reported");
    assert!(missing.free_bytes().is_err(), "a missing folder is an error");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MemoryDiskSpace;

    #[test]
    fn memory_disk_space_fulfils_contract() {
        disk_space(&MemoryDiskSpace::new(Some(1)), &MemoryDiskSpace::new(None));
    }
}
