//! A section of the configuration, with the origins of its values, and the errors about them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::files::check_certificate_file;
use super::values::keys;

/// A configuration error with its origin. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// Creates an error from a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In the file, at a line counted from 1.
    File { path: PathBuf, line: usize },
    /// In an environment variable.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// The deserialized keys of a section.
pub struct Section<T> {
    keys: T,
    label: String,
    origins: BTreeMap<String, Origin>,
}

impl<T> Section<T> {
    /// Creates a section. The label is its name in messages: `server`, `providers[0]`.
    pub fn new(keys: T, label: &str, origins: BTreeMap<String, Origin>) -> Self {
        Self { keys, label: label.to_owned(), origins }
    }

    /// Returns true if the key is set.
    pub fn has(&self, key: &str) -> bool {
        self.origins.contains_key(key)
    }

    /// Returns the first set key, in their order, beside the named ones.
    pub fn first_beside(&self, named: &[&str]) -> Option<String>
    where
        T: DeserializeOwned,
    {
        keys::<T>().into_iter().find(|key| self.has(key) && !named.contains(&key.as_str()))
    }

    /// Returns true if the value of the key comes from the file.
    pub fn is_in_file(&self, key: &str) -> bool {
        matches!(self.origins.get(key), Some(Origin::File { .. }))
    }

    /// Resolves a path that the value of a key contains. A relative path in the file is relative to the folder of the
    /// file, one in an environment variable to the working directory.
    pub fn resolve(&self, key: &str, path: &Path) -> PathBuf {
        match self.origins.get(key) {
            Some(Origin::File { path: file, .. }) => file.parent().unwrap_or(Path::new("")).join(path),
            _ => path.to_owned(),
        }
    }

    /// Resolves and checks a file of certificates or of their keys.
    ///
    /// # Errors
    /// It is no regular file, or too large.
    pub fn certificate_file(&self, key: &str, path: Option<&str>) -> Result<Option<PathBuf>, ConfigError> {
        let Some(path) = path.map(|path| self.resolve(key, Path::new(path))) else { return Ok(None) };
        check_certificate_file(&path).map_err(|fault| self.fault(key, fault))?;
        Ok(Some(path))
    }

    /// Resolves the files of a client certificate and of its key, which require each other.
    pub fn client_identity(
        &self,
        (certificate_key, certificate): (&str, Option<&str>),
        (key_key, key): (&str, Option<&str>),
    ) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
        match (self.certificate_file(certificate_key, certificate)?, self.certificate_file(key_key, key)?) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (Some(_), None) => Err(self.fault(certificate_key, format!("requires {key_key}"))),
            (None, Some(_)) => Err(self.fault(key_key, format!("requires {certificate_key}"))),
            (None, None) => Ok(None),
        }
    }

    /// Returns an error about the value of a key, with its origin.
    pub fn fault(&self, key: &str, problem: impl fmt::Display) -> ConfigError {
        match self.origins.get(key) {
            Some(origin) => ConfigError::new(format!("{origin}: {}.{key} {problem}", self.label)),
            None => ConfigError::new(format!("{}.{key} {problem}", self.label)),
        }
    }
}

impl<T> Deref for Section<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.keys
    }
}
