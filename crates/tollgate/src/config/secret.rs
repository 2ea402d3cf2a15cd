//! Secrets are named in the configuration, never written there.

use std::path::PathBuf;

use super::{ConfigError, Environment};

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In an environment variable of that name.
    Variable(String),
    /// In a file; white space around it is ignored.
    File(PathBuf),
}

impl SecretSource {
    /// Reads the secret.
    ///
    /// # Errors
    /// The variable is not set or the file cannot be read, or what is there is empty or cannot stand in a header.
    pub fn read(&self, environment: &Environment) -> Result<String, ConfigError> {
        let (text, place) = match self {
            Self::Variable(name) => {
                let text = environment.get(name).ok_or_else(|| {
                    ConfigError::new(format!("the environment variable {name}, named by api_key_env, is not set"))
                })?;
                (text.to_owned(), format!("the environment variable {name}"))
            }
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    ConfigError::new(format!("api_key_file {} cannot be read: {error}", path.display()))
                })?;
                (text, format!("the file {}", path.display()))
            }
        };
        let secret = text.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::new(format!("{place} holds no key: visible ASCII characters are wanted")));
        }
        Ok(secret.to_owned())
    }
}
