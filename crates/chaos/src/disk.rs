//! A small disk in memory that can be filled.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

/// A mounted disk; unmounted when it is dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of some mebibytes for this user. Returns `None` if this user may not mount one.
    pub fn mount(at: &Path, mebibytes: u32) -> Result<Option<Self>> {
        Self::mount_with_mode(at, mebibytes, "700")
    }

    /// Mounts a disk on which every user may create files. Returns `None` if this user may not mount one.
    pub fn mount_for_all(at: &Path, mebibytes: u32) -> Result<Option<Self>> {
        Self::mount_with_mode(at, mebibytes, "1777")
    }

    fn mount_with_mode(at: &Path, mebibytes: u32, mode: &str) -> Result<Option<Self>> {
        std::fs::create_dir_all(at)?;
        let size = format!("size={mebibytes}m,mode={mode}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        Ok(mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(at.to_owned())))
    }

    /// Returns its folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes until the disk is full.
    pub fn fill(&self) -> Result<()> {
        for block in [1 << 20, 4_096] {
            let mut file = File::options().append(true).create(true).open(self.0.join("ballast"))?;
            while file.write_all(&vec![1; block]).is_ok() {}
        }
        Ok(())
    }

    /// Removes what [`SmallDisk::fill`] wrote.
    pub fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.0.join("ballast"))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount works while the server still runs.
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}
