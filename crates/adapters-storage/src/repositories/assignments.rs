//! Assignments of guardrails to keys.

use domain::api_key::{ApiKeyName, KeyReference};
use domain::audit::Actor;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::guardrail::{AssignmentPage, KeyAssignment, keys_removed};
use domain::ids::GuardrailId;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};

use super::SeaOrmGuardrailRepository;
use super::api_keys::by_column;
use super::guardrails::find;
use super::rows::commit_change;
use crate::audit::RowChanges;
use crate::change_feed::LimitChange;
use crate::convert::{hash, key_id, moment, parse};
use crate::entities::api_keys::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};
use crate::statements::chunks;

impl SeaOrmGuardrailRepository {
    pub(super) async fn assignments(
        &self,
        id: GuardrailId,
        offset: u64,
        limit: u64,
    ) -> Result<Option<AssignmentPage>, StoreError> {
        // One transaction, so that the page and the count are consistent.
        let transaction = self.database.snapshot().await?;
        if find(&transaction, id).await?.is_none() {
            return Ok(None);
        }
        let total = holding(id).count(&transaction).await.map_err(store_error)?;
        let rows = holding(id)
            .order_by_desc(Column::GuardrailAssignedAt)
            .order_by_asc(Column::Id)
            .offset(offset)
            .limit(limit)
            .all(&transaction)
            .await
            .map_err(store_error)?;
        let assignments = rows.into_iter().map(|row| to_assignment(id, row)).collect::<Result<_, _>>()?;
        Ok(Some(AssignmentPage { assignments, total }))
    }

    pub(super) async fn remove_assignments(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        actor: &Actor,
    ) -> Result<Option<u64>, StoreError> {
        let transaction = self.database.begin().await?;
        let Some(guardrail) = find(&transaction, id).await? else { return Ok(None) };
        let (mut removed, mut hashes) = (Vec::new(), Vec::new());
        let mut rows = RowChanges::default();
        for (column, names) in by_column(keys) {
            for piece in chunks(&names) {
                // A key that was already removed under its other name has no guardrail anymore.
                let holders: Vec<(Vec<u8>, Vec<u8>)> = holding(id)
                    .select_only()
                    .columns([Column::Id, Column::Hash])
                    .filter(column.is_in(piece.iter().cloned()))
                    .into_tuple()
                    .all(&transaction)
                    .await
                    .map_err(store_error)?;
                for piece in chunks(&holders) {
                    release(&transaction, piece.iter().map(|(key, _)| key.clone())).await?;
                }
                for (key, digest) in holders {
                    rows.assignment(&key, Some(&id.to_string()), None);
                    let key = key_id(&key, "api_keys.id", "a key")?;
                    removed.push(key);
                    hashes.push(hash(&digest, "api_keys.hash", key)?);
                }
            }
        }
        if !removed.is_empty() {
            removed.sort_unstable();
            let workspace_id = parse(&guardrail.workspace_id, "guardrails.workspace_id", id)?;
            let subjects = ChangeSubject::keys_of(workspace_id, &hashes);
            let audit = keys_removed(actor, id, &removed);
            commit_change(&self.database, transaction, (&subjects, LimitChange::None), &audit, &rows).await?;
        }
        Ok(Some(removed.len() as u64))
    }
}

/// Removes the guardrails of keys.
async fn release(transaction: &impl ConnectionTrait, keys: impl Iterator<Item = Vec<u8>>) -> Result<(), StoreError> {
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

fn holding(id: GuardrailId) -> Select<Entity> {
    Entity::find().filter(Column::GuardrailId.eq(id.to_string())).filter(Column::Deleted.eq(false))
}

fn to_assignment(guardrail_id: GuardrailId, row: Model) -> Result<KeyAssignment, StoreError> {
    let key_id = key_id(&row.id, "api_keys.id", &row.label)?;
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
