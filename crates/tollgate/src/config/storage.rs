//! `[storage]`, `[journal]` and `[blobs]`

use std::path::{Path, PathBuf};
use std::time::Duration;

use adapters_blob::LocalBlobStore;
use adapters_storage::EncryptionKey;
use serde::Deserialize;

use super::bucket::{RawBlobs, bucket};
use super::section::Section;
use super::values::{Millis, Within};
use super::{
    BlobsConfig, Config, ConfigError, DatabaseUrl, Environment, FolderConfig, JournalConfig, JournalSync, NamedSecret,
    SecretSource, StorageConfig, urls,
};

/// The path beside which the files of this machine are, if the database is on a server. As every default it is relative
/// to the working directory: the folder of a configuration file can be read-only.
const LOCAL_FILES: &str = "tollgate-data/tollgate";

const NO_ENCRYPTION_KEY: &str = "names a variable or a file that holds no key: 32 bytes in Base64 are wanted, such as \
                                 the output of `openssl rand -base64 32`";

/// The keys of `[storage]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawStorage {
    url: Option<String>,
    synchronous: Option<Synchronous>,
    busy_timeout_ms: Option<u64>,
    encryption_key: Option<SecretSource>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Synchronous {
    Normal,
    Full,
}

/// Checks `[storage]`.
pub fn storage(section: &Section<RawStorage>, environment: &Environment) -> Result<StorageConfig, ConfigError> {
    let url = section.url.as_deref().unwrap_or("sqlite://tollgate-data/tollgate.db");
    let resolved = database(url, |path| section.resolve("url", path));
    let (url, file) = resolved.map_err(|fault| section.fault("url", fault))?;
    let source = section.encryption_key.as_ref();
    let encryption_key = NamedSecret::of(section, "storage.encryption_key", source, environment);
    // A missing variable is an error of those that need the key.
    let value = encryption_key.as_ref().and_then(NamedSecret::value);
    if value.is_some_and(|text| EncryptionKey::from_base64(text).is_none()) {
        return Err(section.fault("encryption_key", NO_ENCRYPTION_KEY));
    }
    Ok(StorageConfig {
        read_only: is_read_only(&url),
        url,
        file,
        synchronous_full: section.synchronous == Some(Synchronous::Full),
        busy_timeout: Duration::from_millis(section.busy_timeout_ms.unwrap_or(5_000)),
        encryption_key,
    })
}

impl StorageConfig {
    /// Reads the key that encrypts the secrets of destinations; `None` if none is configured.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or it holds no key. The message does not contain its content.
    pub fn read_encryption_key(&self) -> Result<Option<EncryptionKey>, ConfigError> {
        let Some(secret) = &self.encryption_key else { return Ok(None) };
        let key = EncryptionKey::from_base64(secret.read()?.expose());
        key.map(Some).ok_or_else(|| ConfigError::new(format!("storage.encryption_key {NO_ENCRYPTION_KEY}")))
    }
}

/// Returns the URL of the database with resolved paths, and its file or the path of this machine's files beside it.
fn database(url: &str, resolve: impl Fn(&Path) -> PathBuf) -> Result<(DatabaseUrl, PathBuf), String> {
    if urls::is_postgres(url) {
        let name = urls::postgres_name(url)?;
        return Ok((DatabaseUrl::Postgres { url: url.to_owned(), name }, PathBuf::from(LOCAL_FILES)));
    }
    let file = resolve(&urls::sqlite_file(url)?);
    Ok((DatabaseUrl::Sqlite(urls::sqlite_url(url, &file)?), file))
}

/// Returns the configuration with another database, from a URL of the command line. A relative path is one of the working
/// directory. The default folder of the journal is beside the other database.
///
/// # Errors
/// The URL is invalid. The message does not contain it, because it may hold a password.
pub fn with_storage_url(config: &Config, url: &str) -> Result<Config, String> {
    let has_default_journal = config.journal.path == beside(&config.storage.file);
    let mut other = config.clone();
    let is_server = urls::is_postgres(url);
    let (url, file) = database(url, Path::to_owned)?;
    other.storage.url = url;
    // The files of this machine stay beside another server.
    if !is_server || config.storage.is_file() {
        other.storage.file = file;
    }
    other.storage.read_only = is_read_only(&other.storage.url);
    if has_default_journal {
        other.journal.path = beside(&other.storage.file);
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
    if let Some(key) = section.first_beside(&["url", "quiet_period_ms"]) {
        return Err(
            section.fault(&key, "has no effect with a folder: set blobs.url to s3://bucket/prefix, or remove it")
        );
    }
    Ok(BlobsConfig::Folder(FolderConfig {
        root: section.resolve("url", &folder),
        quiet_period: section.quiet_period_ms.map_or(LocalBlobStore::QUIET_PERIOD, Millis::get),
    }))
}

const MIB: u64 = 1 << 20;
/// A few segments.
const SMALLEST_JOURNAL: u64 = 64 * MIB;
const LARGEST_JOURNAL: u64 = 1024 * 1024 * MIB;

/// The keys of `[journal]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawJournal {
    path: Option<String>,
    sync: Option<JournalSync>,
    max_bytes: Option<Within<u64, SMALLEST_JOURNAL, LARGEST_JOURNAL>>,
}

/// Checks `[journal]`. By default the folder is beside the database or the files of this machine, with the database's
/// durability.
pub fn journal(section: &Section<RawJournal>, storage: &StorageConfig) -> JournalConfig {
    let path = section.path.as_deref().map(|path| section.resolve("path", Path::new(path)));
    JournalConfig {
        path: path.unwrap_or_else(|| beside(&storage.file)),
        sync: section.sync.unwrap_or(if storage.synchronous_full {
            JournalSync::Always
        } else {
            JournalSync::Interval
        }),
        max_bytes: section.max_bytes.map_or(1024 * MIB, Within::get),
    }
}

/// Returns the default folder: `tollgate.db` has its journal in `tollgate-journal`, so that databases of one folder
/// have separate journals.
fn beside(database: &Path) -> PathBuf {
    let stem = database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    database.with_file_name(format!("{stem}-journal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn storage(text: &str) -> Result<StorageConfig, String> {
        let environment = Environment::from_iter([("GOOD", KEY), ("BAD", "s3cret")]);
        let config = load_text(None, &format!("[storage]\n{text}\n"), &environment);
        config.map(|config| config.storage).map_err(|error| error.to_string())
    }

    #[test]
    fn encryption_key_is_read_from_variable_or_file() {
        assert_eq!(storage("").unwrap().read_encryption_key(), Ok(None));
        let config = storage("encryption_key = \"env:GOOD\"").unwrap();
        assert!(!format!("{config:?}").contains(KEY));
        let key = EncryptionKey::from_base64(KEY);
        assert_eq!(config.read_encryption_key().unwrap(), key);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let config = storage(&format!("encryption_key = \"file:{}\"", path.display())).unwrap();
        let message = || config.read_encryption_key().unwrap_err().to_string();
        assert!(message().contains("storage.encryption_key"), "{}", message());
        std::fs::write(&path, "s3cret").unwrap();
        assert!(message().contains("32 bytes") && !message().contains("s3cret"), "{}", message());
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        assert_eq!(config.read_encryption_key().unwrap(), key);
    }

    #[test]
    fn missing_variable_is_an_error_at_first_use() {
        let message =
            storage("encryption_key = \"env:MISSING\"").unwrap().read_encryption_key().unwrap_err().to_string();
        assert!(message.contains("encryption_key") && message.ends_with("not set, or empty: MISSING"), "{message}");
    }

    #[test]
    fn error_names_setting_and_not_the_secret() {
        for (text, expected) in [
            ("encryption_key = \"env:BAD\"", "32 bytes in Base64"),
            ("encryption_key = \"env:s3cret=\"", "must be \"env:NAME\""),
            ("encryption_key = \"s3cret=\"", "or \"file:PATH\""),
        ] {
            let fault = storage(text).unwrap_err();
            assert!(fault.contains(expected) && fault.contains("encryption_key"), "{fault}");
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }
}
