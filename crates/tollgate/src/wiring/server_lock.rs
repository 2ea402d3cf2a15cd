//! The lock that shows whether another process serves the same database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a start waits while another process removes leftovers of dead ones.
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

    /// Takes the lock, shared with other servers. If no other process holds it, runs `when_alone` first; other processes start serving only
    /// afterwards.
    ///
    /// # Errors
    /// The file cannot be created, or its file system does not support locks.
    pub async fn take(database: &Path, when_alone: impl AsyncFnOnce()) -> io::Result<Self> {
        let file = open(database)?;
        match file.try_lock() {
            Ok(()) => {
                when_alone().await;
                file.unlock()?;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
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
    OpenOptions::new().create(true).truncate(false).write(true).open(lock_file(database))
}

fn lock_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".serving");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(database: &Path) -> (ServerLock, bool) {
        let mut alone = false;
        let lock = ServerLock::take(database, async || alone = true).await.unwrap();
        (lock, alone)
    }

    #[tokio::test]
    async fn take_runs_cleanup_only_when_no_other_process_serves() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let (first, alone) = take(&database).await;
        assert!(alone);
        let (second, alone) = take(&database).await;
        assert!(!alone);
        drop(first);
        let (third, alone) = take(&database).await;
        assert!(!alone, "the second is there");
        drop((second, third));
        assert!(take(&database).await.1);
    }

    #[tokio::test]
    async fn take_waits_while_another_process_cleans_up() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let (began, done) = (tokio::sync::Notify::new(), std::cell::Cell::new(false));
        let first = ServerLock::take(&database, async || {
            began.notify_one();
            tokio::time::sleep(STEP * 5).await;
            done.set(true);
        });
        let second = async {
            began.notified().await;
            let (lock, alone) = take(&database).await;
            assert!(done.get(), "it did not wait");
            (lock, alone)
        };
        let (first, (_second, alone)) = tokio::join!(first, second);
        assert!(first.is_ok() && !alone);
    }

    #[tokio::test]
    async fn take_alone_fails_beside_a_server() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let (server, _) = take(&database).await;
        assert!(ServerLock::take_alone(&database).unwrap().is_none());
        drop(server);
        let alone = ServerLock::take_alone(&database).unwrap();
        assert!(alone.is_some() && ServerLock::take_alone(&database).unwrap().is_none());
    }

    #[tokio::test]
    async fn take_fails_when_folder_is_missing() {
        assert!(ServerLock::take(Path::new("/nowhere/at/all/a.db"), async || ()).await.is_err());
    }
}
