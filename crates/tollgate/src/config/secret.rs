//! Secrets: the configuration contains their locations only. Messages do not repeat the locations, which may be
//! misplaced secrets, except for names of variables that no secret resembles.

use std::fmt;
use std::path::PathBuf;

use super::files::read_regular_text;
use super::{ConfigError, Environment};

/// The location of a secret.
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

/// Checks the name of an environment variable.
///
/// # Errors
/// It contains other characters than letters, digits and `_`, or begins with a digit.
pub fn variable_name(text: &str) -> Result<&str, &'static str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.bytes().all(fits) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit()) {
        return Ok(text);
    }
    Err("must be the name of an environment variable: letters, digits and _, not beginning with a digit. The secret \
         itself belongs in that variable")
}

/// Returns the end of a message about a variable: its name after a colon, if only capitals, digits and `_` are in it.
/// Other names may be misplaced secrets.
pub fn variable_suffix(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_plain { format!(": {name}") } else { String::new() }
}

/// Returns true if a secret is in quotation marks.
pub fn is_quoted(secret: &str) -> bool {
    secret.len() > 1 && ['"', '\''].iter().any(|mark| secret.starts_with(*mark) && secret.ends_with(*mark))
}

impl SecretSource {
    /// Reads an API key, which `api_key_env` or `api_key_file` names.
    ///
    /// # Errors
    /// Fails like [`Self::read_named`].
    pub fn read(&self, environment: &Environment) -> Result<String, ConfigError> {
        self.read_named("api_key", "key", environment)
    }

    /// Reads the secret that the configuration key `{key}_env` or `{key}_file` names.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read, or the secret is empty or has characters that are invalid in a
    /// header. The message names the configuration key and the variable, but no path.
    pub fn read_named(&self, key: &str, noun: &str, environment: &Environment) -> Result<String, ConfigError> {
        let (text, place) = match self {
            Self::Variable(name) => {
                let place = format!("the environment variable that {key}_env names");
                let text = environment.get(name);
                let unset = || ConfigError::new(format!("{place} is not set, or empty{}", variable_suffix(name)));
                let text = text.ok_or_else(unset)?;
                (text.to_owned(), place)
            }
            Self::File(path) => {
                let place = format!("the file that {key}_file names");
                let text = read_regular_text(path)
                    .map_err(|error| ConfigError::new(format!("{place} cannot be read: {error}")))?;
                (text, place)
            }
        };
        let secret = text.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::new(format!("{place} holds no {noun}: visible ASCII characters are wanted")));
        }
        Ok(secret.to_owned())
    }
}
