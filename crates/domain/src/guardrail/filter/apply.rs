//! Filters at work.

use std::sync::Arc;

use super::{Aliases, Blocked, InvalidFilters};
use crate::decision::Inquiry;
use crate::guardrail::{FilterAction, GuardrailRules};
use crate::ids::GuardrailId;

/// Filters of all guardrails that apply together, ready for use.
#[derive(Debug)]
pub struct CompiledFilters {}

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

/// An inquiry that may be sent.
#[derive(Debug, Clone)]
pub struct Filtered {
    /// The inquiry: the same one where nothing was redacted.
    pub inquiry: Arc<Inquiry>,
    /// Which names of questions and options travel under another one.
    pub aliases: Aliases,
    /// What was redacted or flagged.
    pub findings: Vec<Finding>,
}

impl CompiledFilters {
    /// Compiles the filters of guardrails, the workspace's first.
    pub fn compile<'a>(
        _guardrails: impl Iterator<Item = (GuardrailId, &'a GuardrailRules)>,
    ) -> Result<Self, InvalidFilters> {
        Ok(Self {})
    }

    /// Looks through an inquiry.
    pub fn apply(&self, inquiry: &Arc<Inquiry>) -> Result<Filtered, Blocked> {
        Ok(Filtered { inquiry: Arc::clone(inquiry), aliases: Aliases::default(), findings: Vec::new() })
    }
}
