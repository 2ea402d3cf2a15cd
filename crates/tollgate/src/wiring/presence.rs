//! Whether another process serves the same database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For how long a start waits for another one that looks after what a dead process left.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// A shared lock on a file beside the database. It ends with the process, however the process ends.
#[derive(Debug)]
pub struct Presence {
    _file: File,
}

impl Presence {
    /// Takes its place among the serving processes. Where there is no other one, `when_alone` runs first, and no
    /// other one begins to serve until it is done.
    ///
    /// # Errors
    /// The file cannot be made, or cannot be locked where it lies.
    pub async fn take(database: &Path, when_alone: impl AsyncFnOnce()) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(lock_file(database))?;
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
        tokio::time::timeout(PATIENCE, taken).await.map_err(io::Error::from)??;
        Ok(Self { _file: file })
    }
}

fn lock_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".serving");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take(database: &Path) -> (Presence, bool) {
        let mut alone = false;
        let presence = Presence::take(database, async || alone = true).await.unwrap();
        (presence, alone)
    }

    #[tokio::test]
    async fn only_the_first_is_alone_until_all_have_gone() {
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
    async fn nobody_takes_a_place_while_another_looks_after_what_was_left() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let done = std::cell::Cell::new(false);
        let first = Presence::take(&database, async || {
            tokio::time::sleep(STEP * 5).await;
            done.set(true);
        });
        let second = async {
            tokio::task::yield_now().await;
            let (presence, alone) = take(&database).await;
            assert!(done.get(), "it did not wait");
            (presence, alone)
        };
        let (first, (_second, alone)) = tokio::join!(first, second);
        assert!(first.is_ok() && !alone);
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_an_error() {
        assert!(Presence::take(Path::new("/nowhere/at/all/a.db"), async || ()).await.is_err());
    }
}
