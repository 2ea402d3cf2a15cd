//! Configuration errors.

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
