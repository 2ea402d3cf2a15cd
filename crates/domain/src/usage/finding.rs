//! The recorded findings of content filters.

use serde::{Deserialize, Serialize};

use crate::ids::GuardrailId;

/// The action of a filter on a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterAction {
    /// Records the match in the usage record.
    Flag,
    /// Replaces the match before the request is sent.
    Redact,
    /// Rejects the request.
    Block,
}

impl FilterAction {
    /// All actions, from the mildest to the most severe.
    pub const ALL: [Self; 3] = [Self::Flag, Self::Redact, Self::Block];

    /// Returns the name on all interfaces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }

    /// Returns the action of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// A finding of a filter, without the matched text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The guardrail of the filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// The action on the match.
    pub action: FilterAction,
    /// The path of the first match.
    pub path: String,
    /// The number of matches.
    pub count: u32,
}
