//! Content filters: the patterns that are searched in a request, and the actions on their matches.
//!
//! | module | content |
//! |---|---|
//! | `compile` | checks and compiles the filters of several guardrails |
//! | `pattern`, `builtin` | find matches in one text |
//! | `search` | select the filters that may match a request, and search a text by them |
//! | `text`, `map`, `normalize` | give a string of a JSON text a plain and a normalised view |
//! | `scan`, `run` | scan every string, name and number of a text, and text split over neighbours |
//! | `found`, `spans` | hold the matches of a text in bounded memory |
//! | `rewrite` | redact the matches, and report their paths |
//! | `apply`, `aliases` | filter a whole provider input, and restore names in answers |
//! | `attachment` | decide which parts of assets and items are readable |
//! | `labels` | redact session, user and trace labels for trace destinations |

mod aliases;
mod apply;
mod attachment;
mod builtin;
mod compile;
mod found;
mod labels;
mod map;
mod normalize;
mod pattern;
mod rewrite;
mod run;
mod scan;
mod search;
mod spans;
mod text;

pub use aliases::*;
pub use apply::*;
pub use compile::CompiledFilters;

use crate::ids::GuardrailId;

#[cfg(test)]
mod tests;

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
