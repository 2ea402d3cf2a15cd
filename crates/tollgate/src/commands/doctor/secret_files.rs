//! Files with secrets that other users of the machine can read or change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::report::{Check, Status};
use crate::config::{BlobsConfig, Config, NamedSecret, SecretSource};

/// Read and write permissions of the group and of others.
const FOREIGN: u32 = 0o066;
/// Permission of the group and of others to enter a folder.
const ENTRY: u32 = 0o011;

/// Returns a warning for each file with secrets that other users can read or change. Files that cannot be examined are
/// left to other checks.
pub fn exposed(config: &Config) -> Vec<Check> {
    files(config).iter().filter_map(|(name, path)| warning(name, path)).collect()
}

/// Returns every file that may contain a secret, with the name of its check.
fn files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let has_inline_secret = config.telemetry.as_ref().is_some_and(|telemetry| telemetry.has_headers_in_file);
    if let Some(file) = config.file.as_ref().filter(|_| has_inline_secret) {
        files.push(("configuration, with otlp_headers".to_owned(), file.clone()));
    }
    for provider in &config.providers {
        if let Some(path) = provider.api_key.as_ref().and_then(SecretSource::file) {
            files.push((format!("provider {}, api_key", provider.slug), path.to_owned()));
        }
        if let Some((_, key)) = &provider.client_identity {
            files.push((format!("provider {}, client_key_file", provider.slug), key.clone()));
        }
    }
    let password = config.rate_limits.as_ref().and_then(|limits| limits.password.as_ref());
    if let Some(path) = password.and_then(SecretSource::file) {
        files.push(("rate_limits, password".to_owned(), path.to_owned()));
    }
    if let Some((_, key)) = config.rate_limits.as_ref().and_then(|limits| limits.store.client_identity.as_ref()) {
        files.push(("rate_limits, client_key_file".to_owned(), key.clone()));
    }
    if let Some((_, key)) = config.telemetry.as_ref().and_then(|telemetry| telemetry.client_identity.as_ref()) {
        files.push(("telemetry, otlp_client_key_file".to_owned(), key.clone()));
    }
    let mut secrets: Vec<&NamedSecret> = config.storage.encryption_key.iter().collect();
    secrets.extend(config.telemetry.iter().filter_map(|telemetry| telemetry.secret_headers.as_ref()));
    if let BlobsConfig::Bucket(bucket) = &config.blobs {
        secrets.extend(bucket.secrets());
    }
    files
        .extend(secrets.into_iter().filter_map(NamedSecret::file).map(|(key, path)| (key.to_owned(), path.to_owned())));
    let database = &config.storage.file;
    for suffix in ["", "-wal", "-shm"] {
        let mut path = database.clone().into_os_string();
        path.push(suffix);
        files.push(("database".to_owned(), path.into()));
    }
    files.extend(management_keys(database).into_iter().map(|path| ("management key".to_owned(), path)));
    files
}

/// Returns the key files that the first start wrote beside the database.
fn management_keys(database: &Path) -> Vec<PathBuf> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_key = |name: &str| name == "management-key" || name.starts_with("management-key-");
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_key)).map(|entry| entry.path()).collect();
    found.sort_unstable();
    found
}

/// Shows only paths that exist: a path of a missing file may be a secret in the wrong place.
fn warning(name: &str, path: &Path) -> Option<Check> {
    let path = fs::canonicalize(path).ok()?;
    let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    if mode & FOREIGN == 0 || is_shielded(&path) {
        return None;
    }
    let detail = format!(
        "{0} holds secrets, and other users can read or change it (mode {mode:04o}): chmod 600 {0}",
        path.display()
    );
    Some(Check::new(name, Status::Warning, detail))
}

/// Returns true if a folder above the file denies entry to other users.
fn is_shielded(path: &Path) -> bool {
    let mode = |folder: &Path| fs::metadata(folder).map(|metadata| metadata.permissions().mode());
    path.ancestors().skip(1).any(|folder| mode(folder).is_ok_and(|mode| mode & ENTRY == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load};

    /// Creates a readable folder with one file of each kind, all of that mode.
    fn folder_with_mode(mode: u32) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = format!(
            "[storage]\nurl = \"sqlite://{}\"\n[telemetry]\notlp_url = \"http://h\"\notlp_headers = [\"x-a: 1\"]\n\
             [[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\napi_key = \"file:{}\"\n",
            at("t.db").display(),
            at("key").display()
        );
        fs::write(at("tollgate.toml"), text).unwrap();
        for name in ["t.db", "t.db-wal", "key", "management-key", "management-key-2", "other"] {
            fs::write(at(name), "x").unwrap();
        }
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let config = load(Some(&at("tollgate.toml")), &Environment::default()).unwrap();
        (folder, config)
    }

    #[test]
    fn exposed_reports_mode_of_files_accessible_to_others() {
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
            let (folder, config) = folder_with_mode(mode);
            let checks = exposed(&config);
            let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            let (key, database) = ("provider p, api_key", "database");
            let expected =
                ["configuration, with otlp_headers", key, database, database, "management key", "management key"];
            assert_eq!(names, expected, "{mode:o}");
            for check in checks {
                assert_eq!(check.status, Status::Warning);
                assert!(check.detail.contains(&format!("(mode {mode:04o}): chmod 600")), "{}", check.detail);
                assert!(!check.detail.contains("other,"), "{}", check.detail);
            }
            drop(folder);
        }
    }

    #[test]
    fn exposed_ignores_files_private_to_owner() {
        let (_folder, config) = folder_with_mode(0o600);
        assert!(exposed(&config).is_empty());
        let (folder, config) = folder_with_mode(0o644);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(exposed(&config).is_empty(), "the folder admits its owner only");
    }

    #[test]
    fn exposed_ignores_missing_file() {
        let text = "[[providers]]\nslug = \"p\"\nbase_url = \"http://h\"\napi_key = \"file:sk-very-secret\"\n\
                    [storage]\nurl = \"sqlite://no/such/folder/t.db\"\n";
        let config = crate::config::load_text(None, text, &Environment::default()).unwrap();
        assert!(exposed(&config).is_empty());
    }
}
