//! The rules for reading answers.

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

/// The rules for reading the answers of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRules {
    /// The number of decimals that numbers are rounded to.
    pub decimals: u32,
    /// The source of `confidence`.
    pub confidence: ConfidenceSource,
}

impl AnswerRules {
    /// Returns half of the last decimal: the highest rounding error of one number.
    pub(super) fn half_step(self) -> f64 {
        0.5 * 10_f64.powi(-i32::try_from(self.decimals.min(15)).unwrap_or(15))
    }
}
