//! The use cases that manage guardrails: their ports, their shared parts and their audit entries.

use std::sync::Arc;

use super::{Guardrail, GuardrailError, GuardrailRepository, KnownNames, PlacedGuardrail};
use crate::audit::AuditDraft;
use crate::authority::{Authority, Restricted, Right};
use crate::budget::ResetInterval;
use crate::error::StoreError;
use crate::ids::WorkspaceId;
use crate::json::{Json, ObjectWriter};
use crate::naming::{NameError, ResourceName, only_match};
use crate::system::{Clock, IdGenerator};
use crate::workspace::{Workspace, WorkspaceRepository, choose_workspace};

/// The use cases that manage guardrails, over their ports. Changes need [`Right::Write`]; those of a workspace's default
/// guardrail need [`Right::Unrestricted`], because it bounds the workspace. Assigning keys is an operation of its own:
/// [`super::AssignKeysToGuardrail`].
#[derive(Clone)]
pub struct ManageGuardrails {
    /// Stores guardrails.
    pub guardrails: Arc<dyn GuardrailRepository>,
    /// Stores workspaces and their default guardrails.
    pub workspaces: Arc<dyn WorkspaceRepository>,
    /// The models and providers that a guardrail can name.
    pub names: KnownNames,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Generates ids.
    pub ids: Arc<dyn IdGenerator>,
}

impl ManageGuardrails {
    /// Returns the current guardrail, of any workspace that the caller sees.
    ///
    /// # Errors
    /// Fails if no guardrail or several ones have the name, or if the store fails.
    pub async fn get(&self, by: &Authority, name: &str) -> Result<PlacedGuardrail, GuardrailError> {
        let guardrail = find_visible::<GuardrailError>(&*self.guardrails, by, name).await?;
        let workspace = self.workspaces.find(guardrail.workspace_id).await?;
        let workspace_default = workspace.is_some_and(|found| found.default_guardrail_id == Some(guardrail.id));
        Ok(PlacedGuardrail { guardrail, workspace_default })
    }

    /// Returns the named workspace, or that of a call that names none.
    pub(super) async fn workspace(
        &self,
        by: &Authority,
        named: Option<WorkspaceId>,
    ) -> Result<Workspace, GuardrailError> {
        Ok(choose_workspace(&*self.workspaces, by, named).await?)
    }
}

/// Finds a guardrail that exists for the caller, by its id or its unique name.
pub(crate) async fn find_visible<E: From<NameError> + From<StoreError>>(
    guardrails: &dyn GuardrailRepository,
    by: &Authority,
    name: &str,
) -> Result<Guardrail, E> {
    let found = guardrails.find_named(&ResourceName::new(name), by.scope()).await?;
    Ok(only_match(found, |guardrail| guardrail.id.to_string())?)
}

/// Checks the right to change a guardrail that is, or becomes, its workspace's default.
pub(super) fn check_default(by: &Authority, is_default: bool) -> Result<(), Restricted> {
    if is_default { by.check(Right::Unrestricted) } else { Ok(()) }
}

/// Returns the audit entry of a change from one state to another; `None` means that the guardrail does not exist.
pub(super) fn audit_draft(
    by: &Authority,
    action: &'static str,
    before: Option<&PlacedGuardrail>,
    after: Option<&PlacedGuardrail>,
) -> AuditDraft {
    let id = after.or(before).map(|placed| placed.guardrail.id.to_string());
    let subject = format!("guardrail {}", id.unwrap_or_default());
    AuditDraft::change(by.actor(), action, subject, before.map(describe), after.map(describe))
}

/// The highest number of characters of a pattern in an audit entry; the guardrail's versions hold the whole pattern.
const MAX_PATTERN_CHARS: usize = 500;

/// Describes a guardrail without its id and its times. Patterns are not secret: readers of the log may read guardrails.
fn describe(placed: &PlacedGuardrail) -> Json {
    let PlacedGuardrail { guardrail, workspace_default } = placed;
    let Guardrail { workspace_id, name, budget, rules, version, .. } = guardrail;
    let mut view = ObjectWriter::new()
        .text("name", name.as_str())
        .text("workspace_id", workspace_id.to_string())
        .shown("workspace_default", workspace_default)
        .shown("version", version);
    if let Some(budget) = budget {
        view = view.shown("limit_usd", budget.amount);
        view = view.text_or_null("reset_interval", budget.reset.map(ResetInterval::as_str));
    }
    let mut rules = rules.clone();
    for filter in &mut rules.content_filters {
        if let Some((cut, _)) = filter.pattern.char_indices().nth(MAX_PATTERN_CHARS) {
            filter.pattern.truncate(cut);
            filter.pattern.push('…');
        }
    }
    // Rules hold only strings, booleans and lists of them, so this never fails.
    let rules = serde_json::to_value(rules).ok().and_then(|rules| Json::from(rules).members()).unwrap_or_default();
    rules.iter().fold(view, |view, (name, value)| view.json(name, value.text())).finish()
}
