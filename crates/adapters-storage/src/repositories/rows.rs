//! Functions over rows that several repositories need.

use chrono::{DateTime, Utc};
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::rate::RateLimits;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, Select, Value};

use crate::audit::{RowChanges, append, workspace_before};
use crate::change_feed::{LimitChange, record_changes};
use crate::connections::Transaction;
use crate::entities::workspaces;
use crate::errors::{corrupt, store_error};

/// Selects a workspace unless it is deleted.
pub(super) fn workspace_by_id(id: WorkspaceId) -> Select<workspaces::Entity> {
    workspaces::Entity::find_by_id(id.to_string()).filter(workspaces::Column::DeletedAt.is_null())
}

/// Returns true if the workspace exists.
pub(super) async fn workspace_exists(connection: &impl ConnectionTrait, id: WorkspaceId) -> Result<bool, StoreError> {
    Ok(workspace_by_id(id).one(connection).await.map_err(store_error)?.is_some())
}

/// Returns the total spend at the start of the workspace's credit, including earlier charges that were folded later.
pub(crate) fn credit_base(base_pico: Option<i64>, late_pico: i64) -> Option<i64> {
    base_pico.unwrap_or(0).checked_add(late_pico)
}

/// Returns the condition that the column is unchanged.
pub(super) fn unchanged<T: Into<Value>>(column: impl ColumnTrait, value: Option<T>) -> SimpleExpr {
    value.map_or_else(|| column.is_null(), |value| column.eq(value))
}

/// Converts two columns to rate limits.
pub(super) fn rates(
    requests: Option<i64>,
    tokens: Option<i64>,
    column: &str,
    row: impl std::fmt::Display,
) -> Result<RateLimits, StoreError> {
    let rate = |count: Option<i64>| count.map(|count| count.try_into().map_err(|_| corrupt(column, &row))).transpose();
    Ok(RateLimits { requests_per_minute: rate(requests)?, tokens_per_minute: rate(tokens)? })
}

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
    rows.record_change(transaction, &before).await?;
    Ok(Some(before.default_guardrail_id.as_deref() != guardrail_id))
}

/// A change without an entry in the feed.
pub(super) const NO_CHANGE: (&[ChangeSubject], LimitChange) = (&[], LimitChange::None);

/// Writes a change to the feed and to the audit log, in its transaction, and commits. `at` is also the time in its rows.
pub(super) async fn commit_change(
    transaction: Transaction,
    at: DateTime<Utc>,
    (subjects, limits): (&[ChangeSubject], LimitChange),
    audit: &AuditDraft,
    rows: &RowChanges,
) -> Result<(), StoreError> {
    record_changes(&transaction, at, subjects, limits).await?;
    append(&transaction, audit, at, rows).await?;
    transaction.commit().await
}

/// Like [`commit_change`], for a change of no managed row and no limit.
pub(super) async fn commit_unmanaged_change(
    transaction: Transaction,
    at: DateTime<Utc>,
    subjects: &[ChangeSubject],
    audit: &AuditDraft,
) -> Result<(), StoreError> {
    commit_change(transaction, at, (subjects, LimitChange::None), audit, &RowChanges::default()).await
}

/// Returns the condition for rows of the workspaces of a scope.
pub(super) fn is_within(workspace_id: impl ColumnTrait, within: &ManagementScope) -> Condition {
    let own = within.workspaces().map(|own| workspace_id.is_in(own.iter().map(ToString::to_string)));
    Condition::all().add_option(own)
}
