//! `tollgate backup` and `tollgate restore`

mod archive;
mod create;
mod restore;

use std::io;

pub use archive::hex;
pub use create::create;
pub use restore::{Verification, restore, verify};

use crate::commands::prelude::*;
use crate::config::StorageConfig;

/// The name of the database's entry in an archive.
const DATABASE: &str = "database.sqlite";
/// The name of the first entry of an archive.
const MANIFEST: &str = "backup.json";

/// Renames a file. Fails if the new name exists.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    // A hard link fails if the name exists; a rename would replace the file.
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from)?,
        // Some file systems have no hard links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && to.symlink_metadata().is_err() => {
            std::fs::rename(from, to)?;
        }
        Err(error) => return Err(error),
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the paths of the write-ahead log and of the index of a database.
fn side_files(database: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|suffix| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

/// Checks that the database is a file: this command copies no database of a server.
fn require_file(storage: &StorageConfig) -> anyhow::Result<()> {
    ensure!(
        storage.is_file(),
        "{} is a database on a server: copy it with pg_dump or the server's own backups, and the folder or bucket of \
         blobs.url after it",
        storage.name()
    );
    Ok(())
}

/// Fails if a closed database still has a write-ahead log: its last writes are not in the file.
fn require_checkpointed(database: &Path) -> anyhow::Result<()> {
    let [wal, _] = side_files(database);
    anyhow::ensure!(wal.symlink_metadata().is_err(), "{} was not written back; is the disk full?", wal.display());
    Ok(())
}
