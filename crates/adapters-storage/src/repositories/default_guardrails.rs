//! Default guardrails of workspaces.

use domain::error::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter};

use crate::audit_rows::{RowChanges, workspace_before};
use crate::entities::workspaces;
use crate::errors::store_error;

/// Sets or clears the guardrail of a workspace. Returns whether the workspace changed; `None` if it does not exist.
pub(super) async fn set_guardrail(
    transaction: &impl ConnectionTrait,
    workspace_id: &str,
    guardrail_id: Option<&str>,
    rows: &mut RowChanges,
) -> Result<Option<bool>, StoreError> {
    let Some(before) = workspace_before(transaction, workspace_id).await? else { return Ok(None) };
    workspaces::Entity::update_many()
        .col_expr(workspaces::Column::DefaultGuardrailId, Expr::value(guardrail_id.map(str::to_owned)))
        .filter(workspaces::Column::Id.eq(workspace_id))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    rows.workspace_changed(transaction, &before).await?;
    Ok(Some(before.default_guardrail_id.as_deref() != guardrail_id))
}

/// Clears a guardrail from all workspaces. Returns the ids of these workspaces.
pub(super) async fn clear_guardrail(
    transaction: &impl ConnectionTrait,
    guardrail_id: &str,
    rows: &mut RowChanges,
) -> Result<Vec<String>, StoreError> {
    let below = workspaces::Entity::find().filter(workspaces::Column::DefaultGuardrailId.eq(guardrail_id));
    let mut displaced = Vec::new();
    for workspace in below.all(transaction).await.map_err(store_error)? {
        set_guardrail(transaction, &workspace.id, None, rows).await?;
        displaced.push(workspace.id);
    }
    Ok(displaced)
}
