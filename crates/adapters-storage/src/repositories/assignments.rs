//! Assignments of guardrails to keys.

use domain::api_key::{ApiKeyName, KeyReference};
use domain::audit::Actor;
use domain::error::StoreError;
use domain::guardrail::KeyAssignment;
use domain::ids::{ApiKeyId, GuardrailId};
use domain::secret::ApiKeyHash;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, Select};

use super::api_keys::by_column;
use crate::convert::{hash, key_id, moment, parse};
use crate::entities::api_keys::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};
use crate::statements::chunks_of;

/// Returns the ids and hashes of all keys with a guardrail, including deleted keys.
pub(super) async fn find_holders(
    transaction: &impl ConnectionTrait,
    guardrail_id: &str,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StoreError> {
    Entity::find()
        .select_only()
        .columns([Column::Id, Column::Hash])
        .filter(Column::GuardrailId.eq(guardrail_id))
        .into_tuple()
        .all(transaction)
        .await
        .map_err(store_error)
}

/// The most keys that one statement reads or assigns. A statement keeps the pages that it changes in memory until it
/// ends, and the thread serves no request while a statement is built.
pub(super) const ASSIGNED_AT_ONCE: usize = 512;

/// A live key of the workspace of a guardrail.
pub(super) struct AssignableKey {
    pub(super) id: ApiKeyId,
    pub(super) hash: ApiKeyHash,
    /// As it is stored: an unreadable id is replaced like any other.
    pub(super) guardrail_id: Option<String>,
}

/// The columns of a key that an assignment needs.
#[derive(FromQueryResult)]
struct KeyColumns {
    id: Vec<u8>,
    hash: Vec<u8>,
    workspace_id: Option<String>,
    guardrail_id: Option<String>,
    deleted: bool,
}

/// Returns the live keys of the workspace among the named keys, each once, in the order of their ids. Ids rise with the
/// time of creation, as the rows of the table do, so that updates in this order write each page once.
pub(super) async fn find_assignable(
    transaction: &impl ConnectionTrait,
    workspace_id: &str,
    keys: &[KeyReference],
) -> Result<Vec<AssignableKey>, StoreError> {
    let mut found = Vec::with_capacity(keys.len());
    for (column, names) in by_column(keys) {
        for piece in chunks_of(&names, ASSIGNED_AT_ONCE) {
            // Only the names select rows: with the workspace in the condition, SQLite prefers that index and reads the
            // whole workspace for each statement.
            let rows: Vec<KeyColumns> = Entity::find()
                .select_only()
                .columns([Column::Id, Column::Hash, Column::WorkspaceId, Column::GuardrailId, Column::Deleted])
                .filter(column.is_in(piece.iter().cloned()))
                .lock_exclusive()
                .into_model()
                .all(transaction)
                .await
                .map_err(store_error)?;
            for row in rows {
                if !row.deleted && row.workspace_id.as_deref() == Some(workspace_id) {
                    let id = key_id(&row.id, "api_keys.id", workspace_id)?;
                    let hash = hash(&row.hash, "api_keys.hash", id)?;
                    found.push(AssignableKey { id, hash, guardrail_id: row.guardrail_id });
                }
            }
        }
    }
    found.sort_unstable_by_key(|key| key.id);
    found.dedup_by_key(|key| key.id);
    Ok(found)
}

pub(super) async fn assign(
    transaction: &impl ConnectionTrait,
    guardrail_id: &str,
    keys: impl Iterator<Item = Vec<u8>>,
    at: i64,
    actor: &Actor,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::GuardrailId, Expr::value(guardrail_id))
        .col_expr(Column::GuardrailAssignedAt, Expr::value(at))
        .col_expr(Column::GuardrailAssignedBy, Expr::value(actor.name.as_str()))
        .filter(Column::Id.is_in(keys))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

/// Removes the guardrails of keys.
pub(super) async fn release(
    transaction: &impl ConnectionTrait,
    keys: impl Iterator<Item = Vec<u8>>,
) -> Result<(), StoreError> {
    Entity::update_many()
        .col_expr(Column::GuardrailId, Expr::value(None::<String>))
        .col_expr(Column::GuardrailAssignedAt, Expr::value(None::<i64>))
        .col_expr(Column::GuardrailAssignedBy, Expr::value(None::<String>))
        .filter(Column::Id.is_in(keys))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}

/// Selects the live keys with a guardrail.
pub(super) fn select_live_holders(id: GuardrailId) -> Select<Entity> {
    Entity::find().filter(Column::GuardrailId.eq(id.to_string())).filter(Column::Deleted.eq(false))
}

/// Selects the live keys with any guardrail.
pub(super) fn select_all_live_holders() -> Select<Entity> {
    Entity::find().filter(Column::GuardrailId.is_not_null()).filter(Column::Deleted.eq(false))
}

pub(super) fn to_assignment(row: Model) -> Result<KeyAssignment, StoreError> {
    let key_id = key_id(&row.id, "api_keys.id", &row.label)?;
    let guardrail_id = parse(&row.guardrail_id.unwrap_or_default(), "api_keys.guardrail_id", key_id)?;
    let assigned_at = row.guardrail_assigned_at.unwrap_or(row.created_at);
    Ok(KeyAssignment {
        guardrail_id,
        key_id,
        key_hash: hash(&row.hash, "api_keys.hash", key_id)?,
        key_name: ApiKeyName::try_new(&row.name).map_err(|_| corrupt("api_keys.name", key_id))?,
        key_label: row.label,
        assigned_by: row.guardrail_assigned_by,
        assigned_at: moment(assigned_at, "api_keys.guardrail_assigned_at", key_id)?,
    })
}
