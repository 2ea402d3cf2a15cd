//! The findings of content filters, as they are recorded.

use serde::{Deserialize, Serialize};

use crate::ids::GuardrailId;

/// What happens to a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterAction {
    /// It is noted in the usage record.
    Flag,
    /// It is replaced before anything is sent.
    Redact,
    /// The request is refused.
    Block,
}

impl FilterAction {
    /// Every action, the mildest first.
    pub const ALL: [Self; 3] = [Self::Flag, Self::Redact, Self::Block];

    /// Its name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }

    /// The action of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == name)
    }
}

/// What a filter found, without a word of what matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whose filter.
    pub guardrail_id: GuardrailId,
    /// The filter's label.
    pub label: String,
    /// What was done about it.
    pub action: FilterAction,
    /// Where the first match is.
    pub path: String,
    /// How many matches there were.
    pub count: u32,
}
