//! The lock that shows whether another process serves the same database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a start waits for a command that needs the database alone.
const MAX_WAIT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// A lock on a file beside the database. The system releases it when the process ends.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Takes the lock for this process alone; `None` if a server holds it. Servers wait for its release for ten seconds.
    ///
    /// # Errors
    /// The file cannot be created, or its file system does not support locks.
    pub fn take_alone(database: &Path) -> io::Result<Option<Self>> {
        let file = open(database)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock, shared with other servers.
    ///
    /// # Errors
    /// The file cannot be created, or its file system does not support locks.
    pub async fn take(database: &Path) -> io::Result<Self> {
        let file = open(database)?;
        let taken = async {
            loop {
                match file.try_lock_shared() {
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(STEP).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => return Ok(()),
                }
            }
        };
        tokio::time::timeout(MAX_WAIT, taken).await.map_err(io::Error::from)??;
        Ok(Self { _file: file })
    }
}

fn open(database: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock_file(database))
}

fn lock_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".serving");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn take_alone_fails_beside_servers() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let (first, second) = (ServerLock::take(&database).await.unwrap(), ServerLock::take(&database).await.unwrap());
        assert!(ServerLock::take_alone(&database).unwrap().is_none());
        drop(first);
        assert!(ServerLock::take_alone(&database).unwrap().is_none());
        drop(second);
        let alone = ServerLock::take_alone(&database).unwrap();
        assert!(alone.is_some() && ServerLock::take_alone(&database).unwrap().is_none());
    }

    #[tokio::test]
    async fn take_waits_for_a_command_that_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let alone = ServerLock::take_alone(&database).unwrap();
        let mut server = std::pin::pin!(ServerLock::take(&database));
        assert!(futures_util::poll!(&mut server).is_pending());
        drop(alone);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn take_fails_when_folder_is_missing() {
        assert!(ServerLock::take(Path::new("/nowhere/at/all/a.db")).await.is_err());
    }
}
