//! Errors of filters.

use crate::ids::GuardrailId;

/// A filter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {fault}")]
pub struct InvalidFilters {
    /// The path of the filter, such as `content_filters[2].pattern`.
    pub path: String,
    /// The violation and its remedy, as a fragment of a sentence.
    pub fault: String,
}

/// A request that a filter blocks. It holds no part of the matched text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Request blocked by content filter: [{label}]")]
pub struct Blocked {
    /// The guardrail of the filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// The path of the match, such as `state.messages[3].content`.
    pub path: String,
}
