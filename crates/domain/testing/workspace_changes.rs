//! Changes of workspaces without a use case.

use crate::audit::AuditDraft;
use crate::error::StoreError;
use crate::ids::{GuardrailId, WorkspaceId};
use crate::money::Usd;
use crate::workspace::{Credit, Workspace, WorkspaceError, WorkspaceRepository, WorkspaceUpdate};

/// Adds credit, and returns the balance.
///
/// # Errors
/// Those of [`WorkspaceRepository::change_credit`]; a sum out of range.
pub async fn add_credit(
    workspaces: &dyn WorkspaceRepository,
    id: WorkspaceId,
    amount: Usd,
    audit: &AuditDraft,
) -> Result<Option<Usd>, WorkspaceError> {
    let edit = |before: &Credit| {
        let sum = before.granted.unwrap_or_default().checked_add(amount);
        Ok((Some(sum.ok_or(WorkspaceError::CreditOutOfRange)?), audit.clone()))
    };
    Ok(workspaces.change_credit(id, &edit).await?.and_then(|credit| credit.remaining()))
}

/// Clears the credit. Returns false if the workspace does not exist.
///
/// # Errors
/// Those of [`WorkspaceRepository::change_credit`].
pub async fn clear_credit(
    workspaces: &dyn WorkspaceRepository,
    id: WorkspaceId,
    audit: &AuditDraft,
) -> Result<bool, WorkspaceError> {
    let edit = |_: &Credit| Ok((None, audit.clone()));
    Ok(workspaces.change_credit(id, &edit).await?.is_some())
}

/// Sets or clears the default guardrail.
///
/// # Errors
/// Those of [`WorkspaceRepository::update`].
pub async fn set_default_guardrail(
    workspaces: &dyn WorkspaceRepository,
    id: WorkspaceId,
    guardrail: Option<GuardrailId>,
    audit: &AuditDraft,
) -> Result<WorkspaceUpdate, StoreError> {
    let Some(before) = workspaces.find(id).await? else { return Ok(WorkspaceUpdate::Differs) };
    let after = Workspace { default_guardrail_id: guardrail, ..before.clone() };
    workspaces.update(&before, &after, audit).await
}
