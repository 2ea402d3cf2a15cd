//! A guardrail's record as somebody writes it: what is to be set, taken away and left as it is.

mod apply;
mod read;

use super::{BuiltinContentFilter, ContentFilter, InvalidGuardrail};
use crate::budget::ResetInterval;
use crate::edit::Edit;
use crate::ids::WorkspaceId;
use crate::money::Usd;

/// A record to be made, or the members of one that change. Its form has been checked; names of models and providers
/// and the patterns of filters are checked when it is applied.
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
    /// By their names.
    data_policy: Vec<(&'static str, Option<bool>)>,
    content_filters: Edit<Vec<ContentFilter>>,
    content_filter_builtins: Edit<Vec<BuiltinContentFilter>>,
}

impl GuardrailDraft {
    /// A record that rules nothing and has a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// The same draft for a guardrail of that workspace.
    #[must_use]
    pub fn in_workspace(self, id: WorkspaceId) -> Self {
        Self { workspace_id: Some(id), ..self }
    }

    /// The name, where the draft has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The workspace that the draft names.
    pub fn workspace_id(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    /// Whether the whole workspace is to be under it.
    pub fn workspace_default(&self) -> Option<bool> {
        self.workspace_default
    }

    /// Refuses a change that names no member of the record.
    pub(super) fn must_change_something(&self) -> Result<(), InvalidGuardrail> {
        let nothing = Self { workspace_id: self.workspace_id, ..Self::default() };
        if *self == nothing { Err(InvalidGuardrail::new("", "No update fields provided")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
