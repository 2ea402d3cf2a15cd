//! Functions over rows that several repositories need.

use domain::error::StoreError;
use domain::ids::{DestinationId, WorkspaceId};
use domain::rate::RateLimits;
use sea_orm::sea_query::SimpleExpr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, Select, Value};

use crate::entities::{destinations, workspaces};
use crate::errors::{corrupt, store_error};

/// Selects a workspace unless it is deleted.
pub(super) fn workspace_by_id(id: WorkspaceId) -> Select<workspaces::Entity> {
    workspaces::Entity::find_by_id(id.to_string()).filter(workspaces::Column::DeletedAt.is_null())
}

/// Returns true if the workspace exists.
pub(super) async fn workspace_exists(connection: &impl ConnectionTrait, id: WorkspaceId) -> Result<bool, StoreError> {
    Ok(workspace_by_id(id).one(connection).await.map_err(store_error)?.is_some())
}

/// Returns true if the destination exists.
pub(super) async fn destination_exists(
    connection: &impl ConnectionTrait,
    id: DestinationId,
) -> Result<bool, StoreError> {
    let found = destinations::Entity::find_by_id(id.to_string()).one(connection).await.map_err(store_error)?;
    Ok(found.is_some())
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
