//! `[storage]` and `[blobs]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use serde::Deserialize;

use super::bucket::{RawBlobs, bucket};
use super::section::Section;
use super::values::{Millis, Positive, Within};
use super::{
    BlobsConfig, Config, ConfigError, DatabaseUrl, Environment, FolderConfig, NamedSecret, SecretSource, StorageConfig,
    journal, urls,
};

/// Sixteen pages. A smaller number is probably a number of pages.
const SMALLEST_DATABASE: u64 = 65_536;
/// The limit of SQLite: 2^32 - 2 pages of 4096 bytes.
const LARGEST_DATABASE: u64 = 17_592_186_036_224;

/// The default wait of a start for the database.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The path beside which the files of this machine are, if the database is on a server.
const LOCAL_FILES: &str = "tollgate-data/tollgate";

/// The keys of `[storage]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawStorage {
    url: Option<String>,
    synchronous: Option<Synchronous>,
    busy_timeout_ms: Option<u64>,
    start_timeout_ms: Option<Millis<0, 86_400_000>>,
    read_connections: Option<Positive<u32>>,
    max_database_bytes: Option<Within<u64, SMALLEST_DATABASE, LARGEST_DATABASE>>,
    encryption_key: Option<SecretSource>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Synchronous {
    Normal,
    Full,
}

/// The keys of `[blobs]` that need a bucket.
const BUCKET_KEYS: [&str; 8] = [
    "endpoint",
    "region",
    "path_style",
    "credentials",
    "access_key_id",
    "secret_access_key",
    "session_token",
    "ca_file",
];

/// Checks `[storage]`.
pub fn storage(section: &Section<RawStorage>, environment: &Environment) -> Result<StorageConfig, ConfigError> {
    let url = section.url.as_deref().unwrap_or("sqlite://tollgate-data/tollgate.db");
    let (url, file) = database(section, url)?;
    let key = section.secret("encryption_key", section.encryption_key.as_ref());
    let encryption_key = key.map(|source| NamedSecret::new("storage.encryption_key", source, environment));
    let checked = encryption_key.as_ref().map_or(Ok(()), NamedSecret::check_encryption_key);
    checked.map_err(|fault| section.fault("encryption_key", fault))?;
    Ok(StorageConfig {
        read_only: is_read_only(&url),
        url,
        file,
        synchronous_full: section.synchronous == Some(Synchronous::Full),
        busy_timeout: Duration::from_millis(section.busy_timeout_ms.unwrap_or(5_000)),
        start_timeout: section.start_timeout_ms.map_or(START_TIMEOUT, Millis::get),
        read_connections: section.read_connections.map_or(4, Positive::get),
        max_database_bytes: section.max_database_bytes.map(Within::get),
        encryption_key,
    })
}

/// Returns the URL of the database with absolute paths, and its file or the path of this machine's files beside it.
fn database(section: &Section<RawStorage>, url: &str) -> Result<(DatabaseUrl, PathBuf), ConfigError> {
    let fault = |problem: String| section.fault("url", problem);
    if urls::is_postgres(url) {
        let name = urls::postgres_name(url).map_err(fault)?;
        return Ok((
            DatabaseUrl::Postgres { url: url.to_owned(), name },
            section.resolve("url", Path::new(LOCAL_FILES)),
        ));
    }
    let file = section.resolve("url", &urls::sqlite_file(url).map_err(fault)?);
    Ok((DatabaseUrl::Sqlite(urls::sqlite_url(url, &file).map_err(fault)?), file))
}

/// Returns the configuration with another database, from a URL of the command line. A relative path is one of the working
/// directory. The default folder of the journal is beside the other database.
///
/// # Errors
/// The URL is invalid. The message does not contain it, because it may hold a password.
pub fn with_storage_url(config: &Config, url: &str) -> Result<Config, String> {
    let has_default_journal = config.journal.path == journal::beside(&config.storage.file);
    let mut other = config.clone();
    if urls::is_postgres(url) {
        other.storage.url = DatabaseUrl::Postgres { url: url.to_owned(), name: urls::postgres_name(url)? };
        if config.storage.is_file() {
            let folder = config.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
            other.storage.file = folder.join(LOCAL_FILES);
        }
    } else {
        let file = urls::sqlite_file(url)?;
        other.storage.url = DatabaseUrl::Sqlite(urls::sqlite_url(url, &file)?);
        other.storage.file = file;
    }
    other.storage.read_only = is_read_only(&other.storage.url);
    if has_default_journal {
        other.journal.path = journal::beside(&other.storage.file);
    }
    Ok(other)
}

fn is_read_only(url: &DatabaseUrl) -> bool {
    match url {
        DatabaseUrl::Sqlite(url) => url.split_once('?').is_some_and(|(_, parameters)| parameters == "mode=ro"),
        DatabaseUrl::Postgres { .. } => false,
    }
}

/// Checks `[blobs]`.
pub fn blobs(section: &Section<RawBlobs>, environment: &Environment) -> Result<BlobsConfig, ConfigError> {
    let url = section.url.as_deref().unwrap_or("file:tollgate-data/blobs");
    if urls::is_bucket(url) {
        return Ok(BlobsConfig::Bucket(Box::new(bucket(section, url, environment)?)));
    }
    let folder = urls::blobs_folder(url).map_err(|fault| section.fault("url", fault))?;
    if let Some(key) = BUCKET_KEYS.iter().find(|key| section.has(key)) {
        return Err(
            section.fault(key, "has no effect with a folder: set blobs.url to s3://bucket/prefix, or remove it")
        );
    }
    Ok(BlobsConfig::Folder(FolderConfig {
        root: section.resolve("url", &folder),
        quiet_period: section.quiet_period_ms.map_or(LocalBlobStore::QUIET_PERIOD, Millis::get),
    }))
}
