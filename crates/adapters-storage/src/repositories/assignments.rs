//! Which keys hold which guardrail.

use async_trait::async_trait;
use domain::api_key::{ApiKeyHash, ApiKeyName};
use domain::audit::AuditDraft;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::guardrail::{AssignmentPage, GuardrailAssignments, KeyAssignment};
use domain::ids::GuardrailId;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select, TransactionTrait,
};

use super::SeaOrmGuardrailRepository;
use super::guardrails::find;
use crate::audit::append;
use crate::audit_rows::RowChanges;
use crate::change_feed::{LimitChange, record_changes};
use crate::chunks::chunks;
use crate::convert::{hash, hash_column, moment, parse};
use crate::entities::api_keys::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

#[async_trait]
impl GuardrailAssignments for SeaOrmGuardrailRepository {
    async fn list(&self, id: GuardrailId, offset: u64, limit: u64) -> Result<Option<AssignmentPage>, StoreError> {
        // One transaction, so that the page and the count are of the same moment.
        let transaction = self.database.readers()?.begin().await.map_err(store_error)?;
        if find(&transaction, id).await?.is_none() {
            return Ok(None);
        }
        let total = holding(id).count(&transaction).await.map_err(store_error)?;
        let rows = holding(id)
            .order_by_desc(Column::GuardrailAssignedAt)
            .order_by_asc(Column::Hash)
            .offset(offset)
            .limit(limit)
            .all(&transaction)
            .await
            .map_err(store_error)?;
        let assignments = rows.into_iter().map(|row| to_assignment(id, row)).collect::<Result<_, _>>()?;
        Ok(Some(AssignmentPage { assignments, total }))
    }

    async fn remove(
        &self,
        id: GuardrailId,
        hashes: &[ApiKeyHash],
        audit: &AuditDraft,
    ) -> Result<Option<u64>, StoreError> {
        let transaction = self.database.begin().await?;
        let Some(guardrail) = find(&transaction, id).await? else { return Ok(None) };
        let (mut removed, mut changed) = (0, Vec::new());
        let mut rows = RowChanges::default();
        for piece in chunks(hashes) {
            let holders: Vec<Vec<u8>> = holding(id)
                .select_only()
                .column(Column::Hash)
                .filter(Column::Hash.is_in(piece.iter().map(hash_column)))
                .into_tuple()
                .all(&transaction)
                .await
                .map_err(store_error)?;
            for key in &holders {
                rows.assignment(key, Some(&id.to_string()), None);
                changed.push(hash(key, "api_keys.hash", id)?);
            }
            let freed = Entity::update_many()
                .col_expr(Column::GuardrailId, Expr::value(None::<String>))
                .col_expr(Column::GuardrailAssignedAt, Expr::value(None::<i64>))
                .col_expr(Column::GuardrailAssignedBy, Expr::value(None::<String>))
                .filter(Column::Hash.is_in(piece.iter().map(hash_column)))
                .filter(Column::GuardrailId.eq(id.to_string()))
                .filter(Column::Deleted.eq(false))
                .exec(&transaction)
                .await
                .map_err(store_error)?;
            removed += freed.rows_affected;
        }
        if removed > 0 {
            let now = self.database.now();
            let workspace_id = parse(&guardrail.workspace_id, "guardrails.workspace_id", id)?;
            let subjects = ChangeSubject::keys_of(workspace_id, &changed);
            record_changes(&transaction, now, &subjects, LimitChange::None).await?;
            append(&transaction, audit, now, &rows).await?;
            transaction.commit().await.map_err(store_error)?;
        }
        Ok(Some(removed))
    }
}

fn holding(id: GuardrailId) -> Select<Entity> {
    Entity::find().filter(Column::GuardrailId.eq(id.to_string())).filter(Column::Deleted.eq(false))
}

fn to_assignment(guardrail_id: GuardrailId, row: Model) -> Result<KeyAssignment, StoreError> {
    let key_hash = hash(&row.hash, "api_keys.hash", &row.label)?;
    let assigned_at = row.guardrail_assigned_at.unwrap_or(row.created_at);
    Ok(KeyAssignment {
        guardrail_id,
        key_hash,
        key_name: ApiKeyName::try_new(&row.name).map_err(|_| corrupt("api_keys.name", key_hash))?,
        key_label: row.label,
        assigned_by: row.guardrail_assigned_by,
        assigned_at: moment(assigned_at, "api_keys.guardrail_assigned_at", key_hash)?,
    })
}
