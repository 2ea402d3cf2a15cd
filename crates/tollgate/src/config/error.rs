//! What can be wrong with a configuration.

/// One fault of the configuration: what, and where. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// A fault as a sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
