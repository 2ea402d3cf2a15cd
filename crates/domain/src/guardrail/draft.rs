//! The draft of a guardrail: the members to set, to clear and to leave unchanged.

mod read;

use super::{BuiltinContentFilter, ContentFilter, InvalidGuardrail};
use crate::budget::ResetInterval;
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// A guardrail to create, or the members to change. Its form is valid; the names of models and providers and the
/// patterns of filters are checked when the draft is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardrailDraft {
    workspace_id: Option<WorkspaceId>,
    workspace_default: Option<bool>,
    name: Option<String>,
    description: Edit<String>,
    allowed_models: Edit<Vec<String>>,
    ignored_models: Edit<Vec<String>>,
    allowed_providers: Edit<Vec<String>>,
    ignored_providers: Edit<Vec<String>>,
    limit_usd: Edit<Usd>,
    reset_interval: Edit<ResetInterval>,
    /// The data policy rules, by name.
    data_policy: Vec<(&'static str, Option<bool>)>,
    content_filters: Edit<Vec<ContentFilter>>,
    content_filter_builtins: Edit<Vec<BuiltinContentFilter>>,
}

impl GuardrailDraft {
    /// Returns a draft with this name and no rules.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Returns the same draft for a guardrail of that workspace.
    #[must_use]
    pub fn in_workspace(self, id: WorkspaceId) -> Self {
        Self { workspace_id: Some(id), ..self }
    }

    /// Returns the name, if the draft has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the workspace that the draft names.
    pub fn workspace_id(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    /// Returns whether the guardrail shall become the workspace's default.
    pub fn workspace_default(&self) -> Option<bool> {
        self.workspace_default
    }

    /// Rejects a draft that names no member of the record.
    pub(super) fn require_changes(&self) -> Result<(), InvalidGuardrail> {
        let nothing = Self { workspace_id: self.workspace_id, ..Self::default() };
        if *self == nothing { Err(InvalidGuardrail::new("", "No update fields provided")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
