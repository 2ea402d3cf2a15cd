//! How the database is opened.

use std::time::Duration;

/// How the database is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageSettings {
    /// `sqlite://relative/path.db` or `sqlite:///absolute/path.db`; bytes that a URL cannot hold (`?`, `%`) are
    /// percent-encoded. `?mode=ro` opens it for reading alone, `?mode=rw` refuses to create it.
    pub url: String,
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// How long an operation waits for a connection, and again for a lock that another process holds, before it
    /// fails as unavailable.
    pub busy_timeout: Duration,
    /// Most connections for reading; at least 1.
    pub read_connections: u32,
    /// The largest size of the file; writes to a full database fail as unavailable. `None` is the limit of SQLite.
    pub max_bytes: Option<u64>,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Commits survive the death of the process; the last ones may be lost with the power.
    #[default]
    Normal,
    /// Commits survive the loss of power as well.
    Full,
}

impl StorageSettings {
    /// Defaults for a database at `url`: normal synchronous, 5 seconds, 4 readers.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            synchronous: Synchronous::Normal,
            busy_timeout: Duration::from_secs(5),
            read_connections: 4,
            max_bytes: None,
        }
    }
}
