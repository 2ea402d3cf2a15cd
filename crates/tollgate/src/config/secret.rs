//! Secrets are named in the configuration, never written there. Their names are not repeated in messages: somebody may
//! have written the secret itself there.

use std::fmt;
use std::path::PathBuf;

use super::{ConfigError, Environment};

/// Where a secret is.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In an environment variable of that name.
    Variable(String),
    /// In a file; white space around it is ignored.
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

/// Checks the name of an environment variable.
///
/// # Errors
/// It is not made of letters, digits and `_`, or begins with a digit.
pub fn variable_name(text: &str) -> Result<&str, &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.bytes().all(fits) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit()) {
        return Ok(text);
    }
    Err("must be the name of an environment variable: letters, digits and _, not beginning with a digit. The secret \
         itself belongs in that variable")
}

impl SecretSource {
    /// Reads the secret.
    ///
    /// # Errors
    /// The variable is not set or the file cannot be read, or what is there is empty or cannot stand in a header. The
    /// message names the key of the configuration only.
    pub fn read(&self, environment: &Environment) -> Result<String, ConfigError> {
        let (text, place) = match self {
            Self::Variable(name) => {
                let text = environment.get(name).ok_or_else(|| {
                    ConfigError::new("the environment variable that api_key_env names is not set, or empty")
                })?;
                (text.to_owned(), "the environment variable that api_key_env names")
            }
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    ConfigError::new(format!("the file that api_key_file names cannot be read: {error}"))
                })?;
                (text, "the file that api_key_file names")
            }
        };
        let secret = text.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::new(format!("{place} holds no key: visible ASCII characters are wanted")));
        }
        Ok(secret.to_owned())
    }
}
