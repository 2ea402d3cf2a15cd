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

const TOO_LARGE: &str = "; the placeholders of its matches would more than double the text: send less of what it redacts, \
                         or give the filter a shorter label";

/// A request that a filter blocks. It holds no part of the matched text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Request blocked by content filter: [{label}]{}", if *.is_too_large { TOO_LARGE } else { "" })]
pub struct Blocked {
    /// The guardrail of the filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// The path of the match, such as `state.messages[3].content`.
    pub path: String,
    /// True if the filter redacts, and the text with all its placeholders would be too large.
    pub is_too_large: bool,
}
