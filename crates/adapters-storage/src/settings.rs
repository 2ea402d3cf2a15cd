//! Settings and the location of the database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;

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
    /// The largest size of the file; writes to a full database fail as unavailable. `None` is the limit of SQLite. Only
    /// tests set it: without it, they would need a full disk to see that a failed write leaves no lock and no part.
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
            .finish_non_exhaustive()
    }
}

/// The connections for reading: answers do not wait for the database, so lists and sums share a few. They count
/// against the connections of a PostgreSQL server, for each replica.
pub const READ_CONNECTIONS: u32 = 4;

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
            max_bytes: None,
            use_server_clock: true,
            encryption_key: KeySetting::Unset,
        }
    }
}

/// Returns true if a URL names a PostgreSQL database.
pub(crate) fn is_postgres(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("postgres") || scheme.eq_ignore_ascii_case("postgresql")
}

/// A database file with its access mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
}

/// The access mode of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Read and write; created if missing.
    Create,
    /// Read and write; must exist.
    Existing,
    /// Read-only; must exist.
    ReadOnly,
}

/// An invalid database URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidUrl {
    #[error("the storage URL must begin with sqlite:// or postgres://")]
    Scheme,
    #[error("the storage URL names no file")]
    NoFile,
    #[error("the path in the storage URL is not UTF-8")]
    NotUtf8,
    #[error("the only parameter of a storage URL is mode=ro, mode=rw or mode=rwc")]
    Parameter,
}

impl Location {
    /// Parses `sqlite://path` (a third slash makes the path absolute) with an optional `?mode=`.
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let rest = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")).ok_or(InvalidUrl::Scheme)?;
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let path = percent_decode_str(path).decode_utf8().map_err(|_| InvalidUrl::NotUtf8)?;
        if path.is_empty() || path.ends_with('/') || path == ":memory:" {
            return Err(InvalidUrl::NoFile);
        }
        let access = match parameters {
            "" | "mode=rwc" => Access::Create,
            "mode=rw" => Access::Existing,
            "mode=ro" => Access::ReadOnly,
            _ => return Err(InvalidUrl::Parameter),
        };
        // Prefix relative paths, so that SQLite does not take a file named `file:x` for a URI.
        let path = if Path::new(&*path).is_absolute() { PathBuf::from(&*path) } else { Path::new(".").join(&*path) };
        Ok(Self { path, access })
    }

    /// Creates the folder and an empty file if missing. They are private to this user; SQLite's side files inherit the
    /// permissions of the file.
    pub(crate) fn prepare(&self) -> std::io::Result<()> {
        if self.access != Access::Create {
            return Ok(());
        }
        let path = std::path::absolute(&self.path)?;
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
        if let Some(folder) = path.parent() {
            private_folder().create(folder)?;
        }
        match private_file().open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(_) => missing.into_iter().filter_map(Path::parent).try_for_each(sync_folder),
        }
    }
}

/// Syncs a folder, so that new names in it survive a power failure.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    match std::fs::File::open(folder) {
        Ok(folder) => folder.sync_all(),
        // A folder may be writable and not readable.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

fn private_folder() -> std::fs::DirBuilder {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder
}

pub(crate) fn private_file() -> std::fs::OpenOptions {
    let mut file = std::fs::OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_path_and_mode() {
        for (url, path, access) in [
            ("sqlite://data/a.db", "./data/a.db", Access::Create),
            ("sqlite:a.db?mode=rwc", "./a.db", Access::Create),
            ("sqlite:///srv/a b.db?mode=ro", "/srv/a b.db", Access::ReadOnly),
            ("sqlite:///srv/a%3Fb%20%25.db?mode=rw", "/srv/a?b %.db", Access::Existing),
            ("sqlite://file:x", "./file:x", Access::Create),
        ] {
            assert_eq!(Location::parse(url).unwrap(), Location { path: PathBuf::from(path), access }, "{url}");
        }
    }

    #[test]
    fn parse_rejects_url_without_file() {
        for (url, error) in [
            ("postgres://host/db", InvalidUrl::Scheme),
            ("data.db", InvalidUrl::Scheme),
            ("sqlite://", InvalidUrl::NoFile),
            ("sqlite::memory:", InvalidUrl::NoFile),
            ("sqlite:///srv/", InvalidUrl::NoFile),
            ("sqlite://a%FF.db", InvalidUrl::NotUtf8),
            ("sqlite://a.db?cache=shared", InvalidUrl::Parameter),
        ] {
            assert_eq!(Location::parse(url).unwrap_err(), error, "{url}");
        }
    }
}
