//! Changes of credit without a use case.

use crate::audit::AuditDraft;
use crate::ids::WorkspaceId;
use crate::money::Usd;
use crate::workspace::{Credit, Workspace, WorkspaceError, WorkspaceRepository};

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
    let edit = |_: &Workspace, before: &Credit| {
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
    let edit = |_: &Workspace, _: &Credit| Ok((None, audit.clone()));
    Ok(workspaces.change_credit(id, &edit).await?.is_some())
}
