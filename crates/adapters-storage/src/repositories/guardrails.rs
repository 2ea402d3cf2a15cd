//! Guardrails, and which keys hold them.

use async_trait::async_trait;
use domain::api_key::ApiKeyHash;
use domain::error::StoreError;
use domain::guardrail::{Guardrail, GuardrailName, GuardrailRepository};
use domain::ids::{GuardrailId, WorkspaceId};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, FromQueryResult, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect,
};

use crate::change_feed::raise_keys;
use crate::chunks::chunks;
use crate::convert::{hash_column, millis, moment, parse};
use crate::database::Database;
use crate::entities::api_keys;
use crate::entities::guardrails::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// Keeps guardrails in the database.
#[derive(Clone)]
pub struct SeaOrmGuardrailRepository {
    database: Database,
}

impl SeaOrmGuardrailRepository {
    /// Over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl GuardrailRepository for SeaOrmGuardrailRepository {
    async fn insert(&self, guardrail: &Guardrail) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        if !super::workspaces::exists(&transaction, guardrail.workspace_id).await? {
            return Ok(false);
        }
        let row = to_row(guardrail).into_active_model();
        Entity::insert(row).exec_without_returning(&transaction).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)?;
        Ok(true)
    }

    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        let found = find(self.database.readers(), id).await?;
        found.as_ref().map(to_guardrail).transpose()
    }

    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        let rows = Entity::find()
            .filter(Column::WorkspaceId.eq(workspace_id.to_string()))
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::Id)
            .all(self.database.readers())
            .await
            .map_err(store_error)?;
        rows.iter().map(to_guardrail).collect()
    }

    async fn delete(&self, id: GuardrailId) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let freed = api_keys::Entity::update_many()
            .col_expr(api_keys::Column::GuardrailId, Expr::value(None::<String>))
            .filter(api_keys::Column::GuardrailId.eq(id.to_string()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        let deleted = Entity::delete_by_id(id.to_string()).exec(&transaction).await.map_err(store_error)?;
        if freed.rows_affected > 0 {
            raise_keys(&transaction).await?;
        }
        transaction.commit().await.map_err(store_error)?;
        Ok(deleted.rows_affected > 0)
    }

    async fn assign_keys(&self, id: GuardrailId, hashes: &[ApiKeyHash]) -> Result<Option<u64>, StoreError> {
        let transaction = self.database.begin().await?;
        let Some(guardrail) = find(&transaction, id).await? else { return Ok(None) };
        let (mut holding, mut changed) = (0, 0);
        for piece in chunks(hashes) {
            let keys = assignable(&transaction, &guardrail.workspace_id, piece).await?;
            holding += keys.len() as u64;
            let others: Vec<Vec<u8>> = keys
                .into_iter()
                .filter(|key| key.guardrail_id.as_ref() != Some(&guardrail.id))
                .map(|key| key.hash)
                .collect();
            changed += others.len();
            for piece in chunks(&others) {
                assign(&transaction, &guardrail.id, piece).await?;
            }
        }
        if changed > 0 {
            raise_keys(&transaction).await?;
            transaction.commit().await.map_err(store_error)?;
        }
        Ok(Some(holding))
    }

    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError> {
        api_keys::Entity::find()
            .filter(api_keys::Column::GuardrailId.eq(id.to_string()))
            .filter(api_keys::Column::Deleted.eq(false))
            .count(self.database.readers())
            .await
            .map_err(store_error)
    }
}

async fn find(connection: &impl ConnectionTrait, id: GuardrailId) -> Result<Option<Model>, StoreError> {
    Entity::find_by_id(id.to_string()).one(connection).await.map_err(store_error)
}

/// What assigning needs to know of a key.
#[derive(FromQueryResult)]
struct Candidate {
    hash: Vec<u8>,
    workspace_id: Option<String>,
    guardrail_id: Option<String>,
    deleted: bool,
}

/// Those of `hashes` that are live keys of the workspace.
///
/// Only the digest narrows the rows: with the workspace in the condition as well, SQLite prefers that index and reads
/// the whole workspace once for every piece.
async fn assignable(
    transaction: &DatabaseTransaction,
    workspace_id: &str,
    hashes: &[ApiKeyHash],
) -> Result<Vec<Candidate>, StoreError> {
    use api_keys::Column;
    let mut keys: Vec<Candidate> = api_keys::Entity::find()
        .select_only()
        .columns([Column::Hash, Column::WorkspaceId, Column::GuardrailId, Column::Deleted])
        .filter(Column::Hash.is_in(hashes.iter().map(hash_column)))
        .lock_exclusive()
        .into_model()
        .all(transaction)
        .await
        .map_err(store_error)?;
    keys.retain(|key| !key.deleted && key.workspace_id.as_deref() == Some(workspace_id));
    Ok(keys)
}

async fn assign(transaction: &DatabaseTransaction, guardrail_id: &str, hashes: &[Vec<u8>]) -> Result<(), StoreError> {
    api_keys::Entity::update_many()
        .col_expr(api_keys::Column::GuardrailId, Expr::value(guardrail_id))
        .filter(api_keys::Column::Hash.is_in(hashes.iter().cloned()))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    Ok(())
}

fn to_row(guardrail: &Guardrail) -> Model {
    Model {
        id: guardrail.id.to_string(),
        workspace_id: guardrail.workspace_id.to_string(),
        name: guardrail.name.as_str().to_owned(),
        created_at: millis(guardrail.created_at),
    }
}

fn to_guardrail(row: &Model) -> Result<Guardrail, StoreError> {
    let id: GuardrailId = parse(&row.id, "guardrails.id", &row.id)?;
    Ok(Guardrail {
        id,
        workspace_id: parse(&row.workspace_id, "guardrails.workspace_id", id)?,
        name: GuardrailName::try_new(&row.name).map_err(|_| corrupt("guardrails.name", id))?,
        created_at: moment(row.created_at, "guardrails.created_at", id)?,
    })
}
