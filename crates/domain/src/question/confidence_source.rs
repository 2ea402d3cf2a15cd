//! The source of an answer's confidence.

/// The source of the number in `confidence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfidenceSource {
    /// The provider's value, which follows the formula of System One.
    SystemOne,
    /// The value computed from the distribution by the formula of System One. The provider's value becomes
    /// `native_confidence`.
    Computed,
    /// The provider's value, unchanged and with the provider's meaning.
    Native,
}

impl ConfidenceSource {
    /// Returns the name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemOne => "system-one",
            Self::Computed => "computed",
            Self::Native => "native",
        }
    }
}
