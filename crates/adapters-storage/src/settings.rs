//! Settings of the database.

use std::time::Duration;

use crate::encryption::EncryptionKey;

/// The settings of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageSettings {
    /// `sqlite://relative/path.db` or `sqlite:///absolute/path.db`; reserved characters (`?`, `%`) are percent-encoded.
    /// `?mode=ro` opens the database read-only, `?mode=rw` does not create it.
    pub url: String,
    /// The durability of commits.
    pub synchronous: Synchronous,
    /// The longest wait of an operation for a connection, and again for a lock of another process, before it fails as
    /// unavailable.
    pub busy_timeout: Duration,
    /// Most connections for reading; at least 1.
    pub read_connections: u32,
    /// The largest size of the file; writes to a full database fail as unavailable. `None` is the limit of SQLite.
    pub max_bytes: Option<u64>,
    /// The key that encrypts the secrets of destinations; `None` stores them in plain text.
    pub encryption_key: Option<EncryptionKey>,
}

/// The durability of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Commits survive the end of the process; a power failure may lose the last ones.
    #[default]
    Normal,
    /// Commits survive a power failure, too.
    Full,
}

impl StorageSettings {
    /// Returns the defaults for a database at `url`: normal synchronous mode, 5 seconds, 4 readers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            synchronous: Synchronous::Normal,
            busy_timeout: Duration::from_secs(5),
            read_connections: 4,
            max_bytes: None,
            encryption_key: None,
        }
    }
}
