//! Which confidence an answer carries.

/// Which number an answer's `confidence` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfidenceSource {
    /// The provider's own, which follows the formula of System One.
    SystemOne,
    /// Computed by the formula of System One from the distribution; the provider's own is kept beside it as
    /// `native_confidence`.
    Computed,
    /// The provider's own, whatever it means.
    Native,
}

impl ConfidenceSource {
    /// Its name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemOne => "system-one",
            Self::Computed => "computed",
            Self::Native => "native",
        }
    }
}
