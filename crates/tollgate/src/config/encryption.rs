//! The key for secrets in the database: `storage.encryption_key_env` and `storage.encryption_key_file`.

use std::path::PathBuf;

use adapters_storage::EncryptionKey;
use anyhow::{Context as _, anyhow, bail};

use super::Environment;
use super::files::read_regular_text;
use super::secret::{variable_name, variable_suffix};

/// The source of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncryptionKeySource {
    /// The key of an environment variable.
    Variable(EncryptionKey),
    /// An environment variable that is not set, or empty, with its name as far as messages show it.
    MissingVariable(String),
    /// A file that holds the key.
    File(PathBuf),
}

impl EncryptionKeySource {
    /// Returns the key.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or it holds no key. The message does not contain its content.
    pub fn read(&self) -> anyhow::Result<EncryptionKey> {
        match self {
            Self::Variable(key) => Ok(key.clone()),
            Self::MissingVariable(name) => {
                bail!("storage.encryption_key_env names an environment variable that is not set, or empty{name}")
            }
            Self::File(path) => {
                let text = read_regular_text(path)
                    .context("the file that storage.encryption_key_file names cannot be read")?;
                EncryptionKey::from_base64(&text)
                    .ok_or_else(|| anyhow!("the file that storage.encryption_key_file names holds no key: {EXPECTED}"))
            }
        }
    }
}

const EXPECTED: &str = "32 bytes in Base64 are wanted, such as the output of `openssl rand -base64 32`";

/// Returns the source of the key; `None` if no key is configured.
///
/// # Errors
/// The error of `encryption_key_env`, without its value.
pub fn encryption_key(
    variable: Option<&str>,
    file: Option<PathBuf>,
    environment: &Environment,
) -> Result<Option<EncryptionKeySource>, String> {
    let Some(name) = variable else { return Ok(file.map(EncryptionKeySource::File)) };
    if file.is_some() {
        return Err("cannot be set together with encryption_key_file".to_owned());
    }
    let name = variable_name(name)?;
    // Most commands work without the key, so its absence is an error of those that need it.
    let Some(text) = environment.get(name) else {
        return Ok(Some(EncryptionKeySource::MissingVariable(variable_suffix(name))));
    };
    let key = EncryptionKey::from_base64(text)
        .ok_or_else(|| format!("names an environment variable that holds no key: {EXPECTED}"))?;
    Ok(Some(EncryptionKeySource::Variable(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, load_text};

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn read(text: &str) -> Result<Config, String> {
        let environment = Environment::from_iter([("GOOD", KEY), ("BAD", "s3cret")]);
        load_text(None, text, &environment).map_err(|error| error.to_string())
    }

    #[test]
    fn key_is_read_from_variable_or_file() {
        assert_eq!(read("").unwrap().storage.encryption_key, None);
        let config = read("[storage]\nencryption_key_env = \"GOOD\"\n").unwrap();
        assert!(!format!("{config:?}").contains(KEY));
        let key = EncryptionKey::from_base64(KEY).unwrap();
        assert_eq!(config.storage.encryption_key.unwrap().read().unwrap(), key);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let source = EncryptionKeySource::File(path.clone());
        assert!(format!("{:#}", source.read().unwrap_err()).contains("storage.encryption_key_file"));
        std::fs::write(&path, "s3cret").unwrap();
        let message = format!("{:#}", source.read().unwrap_err());
        assert!(message.contains("32 bytes") && !message.contains("s3cret"), "{message}");
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        assert_eq!(source.read().unwrap(), key);
    }

    #[test]
    fn missing_variable_is_an_error_at_first_use() {
        let source = read("[storage]\nencryption_key_env = \"MISSING\"\n").unwrap().storage.encryption_key.unwrap();
        let message = format!("{:#}", source.read().unwrap_err());
        assert!(message.contains("encryption_key_env") && message.ends_with("not set, or empty: MISSING"), "{message}");
    }

    #[test]
    fn error_names_setting_and_not_the_secret() {
        for (text, expected) in [
            ("encryption_key_env = \"BAD\"", "32 bytes in Base64"),
            ("encryption_key_env = \"s3cret=\"", "must be the name of an environment variable"),
            ("encryption_key_env = \"GOOD\"\nencryption_key_file = \"s3cret\"", "together"),
        ] {
            let fault = read(&format!("[storage]\n{text}\n")).unwrap_err();
            assert!(fault.contains(expected) && fault.contains("encryption_key_env"), "{fault}");
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }
}
