//! Settings of the database.

use std::fmt;
use std::time::Duration;

use crate::encryption::KeySetting;

/// The settings of the database.
#[derive(Clone, PartialEq, Eq)]
pub struct StorageSettings {
    /// `sqlite://relative/path.db` or `sqlite:///absolute/path.db`; reserved characters (`?`, `%`) are percent-encoded.
    /// `?mode=ro` opens the database read-only, `?mode=rw` does not create it. Or
    /// `postgres://user:password@host:port/database`.
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
    /// Whether the time is that of the PostgreSQL server, so that replicas agree on it; else that of the machine.
    pub use_server_clock: bool,
    /// The key that encrypts the secrets of destinations.
    pub encryption_key: KeySetting,
}

impl fmt::Debug for StorageSettings {
    /// Leaves out the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageSettings")
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .field("read_connections", &self.read_connections)
            .finish_non_exhaustive()
    }
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
            use_server_clock: true,
            encryption_key: KeySetting::Unset,
        }
    }
}
