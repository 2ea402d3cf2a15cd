//! Workspaces under a guardrail.

use domain::error::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter};

use crate::audit_rows::{RowChanges, workspace_before};
use crate::entities::workspaces;
use crate::errors::store_error;

/// Puts a workspace under a guardrail, or under none. Returns how many workspaces there are of that id.
pub(super) async fn place(
    transaction: &DatabaseTransaction,
    workspace_id: &str,
    guardrail_id: Option<&str>,
    rows: &mut RowChanges,
) -> Result<u64, StoreError> {
    let Some(before) = workspace_before(transaction, workspace_id).await? else { return Ok(0) };
    let updated = workspaces::Entity::update_many()
        .col_expr(workspaces::Column::DefaultGuardrailId, Expr::value(guardrail_id.map(str::to_owned)))
        .filter(workspaces::Column::Id.eq(workspace_id))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    rows.workspace_changed(transaction, &before).await?;
    Ok(updated.rows_affected)
}

/// Takes every workspace from under a guardrail. Returns how many there were.
pub(super) async fn displace(
    transaction: &DatabaseTransaction,
    guardrail_id: &str,
    rows: &mut RowChanges,
) -> Result<u64, StoreError> {
    let below = workspaces::Entity::find().filter(workspaces::Column::DefaultGuardrailId.eq(guardrail_id));
    let mut displaced = 0;
    for workspace in below.all(transaction).await.map_err(store_error)? {
        displaced += place(transaction, &workspace.id, None, rows).await?;
    }
    Ok(displaced)
}
