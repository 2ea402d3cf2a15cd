//! Secrets: the configuration contains their locations only. Messages do not repeat the locations, which may be
//! misplaced secrets, except for names of variables that no secret resembles.

use std::fmt;
use std::path::{Path, PathBuf};

use domain::secret::SecretString;
use serde::de::{Deserialize, Deserializer, Error};

use super::Environment;
use super::files::read_regular_text;
use super::section::{ConfigError, Section};

/// The two forms of a location.
const FORMS: &str = "must be \"env:NAME\", the name of an environment variable (letters, digits and _, no digit \
                     first), or \"file:PATH\", the path of a file; the secret itself belongs there";

/// The location of a secret: `env:NAME` or `file:PATH`.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The name of an environment variable.
    Variable(String),
    /// The path of a file; surrounding white space is trimmed.
    File(PathBuf),
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Variable(_) => "Variable(…)",
            Self::File(_) => "File(…)",
        })
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        match text.split_once(':') {
            Some(("env", name)) if name.bytes().all(is_word) && name.starts_with(|c: char| !c.is_ascii_digit()) => {
                Ok(Self::Variable(name.to_owned()))
            }
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err(D::Error::custom(FORMS)),
        }
    }
}

/// A secret with the key of the configuration that names it, and the value of its variable at the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    key: &'static str,
    source: SecretSource,
    value: Option<SecretString>,
}

impl NamedSecret {
    /// Reads the variable, if the secret is in one. Its absence is an error of those that need the secret. `key` is the
    /// name in messages.
    pub fn new(key: &'static str, source: SecretSource, environment: &Environment) -> Self {
        let mut secret = Self { key, source, value: None };
        secret.value = secret.variable().and_then(|name| environment.get(name)).map(SecretString::new);
        secret
    }

    /// Returns the secret that a key of a section names; the path of a file is resolved.
    pub fn of<T>(
        section: &Section<T>,
        key: &'static str,
        source: Option<&SecretSource>,
        environment: &Environment,
    ) -> Option<Self> {
        let of_section = key.rsplit('.').next().unwrap_or(key);
        let source = match source? {
            SecretSource::File(path) => SecretSource::File(section.resolve(of_section, path)),
            SecretSource::Variable(name) => SecretSource::Variable(name.clone()),
        };
        Some(Self::new(key, source, environment))
    }

    /// Returns the key and the path of the file, if the secret is in one.
    pub fn file(&self) -> Option<(&'static str, &Path)> {
        match &self.source {
            SecretSource::File(path) => Some((self.key, path)),
            SecretSource::Variable(_) => None,
        }
    }

    /// Returns the name of the environment variable, if the secret is in one.
    pub fn variable(&self) -> Option<&str> {
        match &self.source {
            SecretSource::Variable(name) => Some(name),
            SecretSource::File(_) => None,
        }
    }

    /// Returns the secret.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or the secret is empty or has characters that are invalid in a
    /// header. The message names the key and the variable, but no path.
    pub fn read(&self) -> Result<SecretString, ConfigError> {
        let text = self.read_text().map_err(|problem| ConfigError::new(format!("{} {problem}", self.key)))?;
        let secret = text.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            let place = if self.file().is_some() { "a file" } else { "an environment variable" };
            let problem = format!("names {place} that holds no secret: visible ASCII characters are wanted");
            return Err(ConfigError::new(format!("{} {problem}", self.key)));
        }
        Ok(SecretString::new(secret))
    }

    /// Returns the whole text.
    ///
    /// # Errors
    /// The problem of the key: the variable is not set, or the file cannot be read.
    pub fn read_text(&self) -> Result<String, String> {
        match (&self.source, &self.value) {
            (SecretSource::File(path), _) => {
                read_regular_text(path).map_err(|error| format!("names a file that cannot be read: {error}"))
            }
            (SecretSource::Variable(_), Some(value)) => Ok(value.expose().to_owned()),
            (SecretSource::Variable(name), None) => {
                // Other names may be misplaced secrets.
                let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
                let shown = if name.bytes().all(is_plain) { format!(": {name}") } else { String::new() };
                Err(format!("names an environment variable that is not set, or empty{shown}"))
            }
        }
    }

    /// Returns true if the secret is readable and in quotation marks.
    pub fn is_quoted(&self) -> bool {
        self.read().is_ok_and(|secret| {
            let secret = secret.expose();
            secret.len() > 1 && ['"', '\''].iter().any(|mark| secret.starts_with(*mark) && secret.ends_with(*mark))
        })
    }

    /// Returns the value of the variable, if it is set.
    pub fn value(&self) -> Option<&str> {
        self.value.as_ref().map(SecretString::expose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    /// Checks the kind: every key for a secret accepts the two forms and nothing else, and never shows its value.
    #[test]
    fn every_secret_is_a_location() {
        let bucket = "[blobs]\nurl = \"s3://bucket\"\nregion = \"r\"\n";
        for (key, text) in [
            ("api_key", "[[providers]]\nslug = \"a\"\nbase_url = \"http://h\"\n".to_owned()),
            ("password", "[rate_limits]\nurl = \"redis://h\"\n".to_owned()),
            ("encryption_key", "[storage]\n".to_owned()),
            ("access_key_id", format!("{bucket}secret_access_key = \"env:S\"\n")),
            ("secret_access_key", format!("{bucket}access_key_id = \"env:S\"\n")),
            ("session_token", format!("{bucket}access_key_id = \"env:S\"\nsecret_access_key = \"env:S\"\n")),
            ("otlp_secret_headers", "[telemetry]\notlp_url = \"http://h\"\n".to_owned()),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("secret");
            std::fs::write(&file, "x-key: 1\n").unwrap();
            let load = |value: &str| {
                let environment = Environment::from_iter([("HEADERS", "x-key: 1")]);
                let text = format!("{text}{key} = \"{value}\"\n");
                load_text(None, &text, &environment).map_err(|error| error.to_string())
            };
            let variable = if key == "encryption_key" { "env:UNSET" } else { "env:HEADERS" };
            for form in [variable, &format!("file:{}", file.display())] {
                assert!(load(form).is_ok(), "{key}: {}", load(form).unwrap_err());
            }
            for value in ["very-secret", "env:very-secret", "env:", "env:9very_secret", "file:", "FILE:very-secret", ""]
            {
                let message = load(value).unwrap_err();
                assert!(message.contains(&format!(".{key} {FORMS}")) && message.contains(", line "), "{message}");
                assert!(!message.contains("very-secret") && !message.contains("very_secret"), "{message}");
            }
        }
    }
}
