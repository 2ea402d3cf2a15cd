//! A pattern that cannot be used, and a request that may not leave.

use crate::ids::GuardrailId;

/// Filters that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct InvalidFilters {
    /// Which, such as `content_filters[2].pattern`.
    pub path: String,
    /// What is wrong and what to do, as a fragment of a sentence.
    pub fault: String,
}

/// A request that a filter blocks. Holds nothing of the text that matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Request blocked by content filter: [{label}]")]
pub struct Blocked {
    /// Whose filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// Where the match is, such as `state.messages[3].content`.
    pub path: String,
}
