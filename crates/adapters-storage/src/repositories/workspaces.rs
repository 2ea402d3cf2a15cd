//! Workspaces.

use async_trait::async_trait;
use domain::api_key::{ApiKey, ApiKeyScope};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use domain::workspace::{Workspace, WorkspaceName, WorkspaceRepository};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use super::api_keys;
use crate::change_feed::raise_keys;
use crate::convert::{millis, moment, parse, signed, unsigned};
use crate::database::Database;
use crate::entities::workspaces::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

/// Keeps workspaces in the database.
#[derive(Clone)]
pub struct SeaOrmWorkspaceRepository {
    database: Database,
}

impl SeaOrmWorkspaceRepository {
    /// Over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl WorkspaceRepository for SeaOrmWorkspaceRepository {
    async fn insert(&self, workspace: &Workspace) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        insert(&transaction, workspace, false).await?;
        transaction.commit().await.map_err(store_error)
    }

    async fn default_or_insert(&self, workspace: &Workspace) -> Result<Workspace, StoreError> {
        if let Some(found) = find_default(self.database.readers()).await? {
            return to_workspace(found);
        }
        let transaction = self.database.begin().await?;
        if let Some(found) = find_default(&transaction).await? {
            return to_workspace(found);
        }
        insert(&transaction, workspace, true).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(Workspace { is_default: true, ..workspace.clone() })
    }

    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey) -> Result<bool, StoreError> {
        if key.scope != ApiKeyScope::Management {
            return Err(StoreError::Corrupt("the first key must be a management key".to_owned()));
        }
        let transaction = self.database.begin().await?;
        if find_default(&transaction).await?.is_none() {
            insert(&transaction, workspace, true).await?;
        }
        let first = !api_keys::any_management_key(&transaction).await?;
        if first {
            api_keys::insert(&transaction, key).await?;
        }
        transaction.commit().await.map_err(store_error)?;
        Ok(first)
    }

    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let found = Entity::find_by_id(id.to_string()).one(self.database.readers()).await.map_err(store_error)?;
        found.map(to_workspace).transpose()
    }

    async fn list(&self) -> Result<Vec<Workspace>, StoreError> {
        let query = Entity::find().order_by_asc(Column::CreatedAt).order_by_asc(Column::Id);
        let rows = query.all(self.database.readers()).await.map_err(store_error)?;
        rows.into_iter().map(to_workspace).collect()
    }

    async fn set_suspended(&self, id: WorkspaceId, suspended: bool) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let updated = Entity::update_many()
            .col_expr(Column::Suspended, Expr::value(suspended))
            .filter(Column::Id.eq(id.to_string()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if updated.rows_affected == 0 {
            return Ok(false);
        }
        raise_keys(&transaction).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(true)
    }

    async fn add_credit(&self, id: WorkspaceId, amount: Usd) -> Result<Option<Usd>, StoreError> {
        let transaction = self.database.begin().await?;
        let query = Entity::find_by_id(id.to_string()).lock_exclusive();
        let Some(row) = query.one(&transaction).await.map_err(store_error)? else { return Ok(None) };
        let before = row.credit_pico.map_or(Usd::ZERO, Usd::from_pico);
        let after = before.checked_add(amount).ok_or_else(|| corrupt("workspaces.credit_pico", id))?;
        Entity::update_many()
            .col_expr(Column::CreditPico, Expr::value(after.pico()))
            .filter(Column::Id.eq(row.id))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        transaction.commit().await.map_err(store_error)?;
        Ok(Some(after))
    }
}

async fn insert(transaction: &impl ConnectionTrait, workspace: &Workspace, is_default: bool) -> Result<(), StoreError> {
    let row = Model { is_default, ..to_row(workspace)? };
    Entity::insert(row.into_active_model()).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(())
}

async fn find_default(connection: &impl ConnectionTrait) -> Result<Option<Model>, StoreError> {
    Entity::find().filter(Column::IsDefault.eq(true)).one(connection).await.map_err(store_error)
}

/// True where there is such a workspace.
pub(super) async fn exists(connection: &impl ConnectionTrait, id: WorkspaceId) -> Result<bool, StoreError> {
    let found = Entity::find_by_id(id.to_string()).one(connection).await.map_err(store_error)?;
    Ok(found.is_some())
}

fn to_row(workspace: &Workspace) -> Result<Model, StoreError> {
    Ok(Model {
        id: workspace.id.to_string(),
        name: workspace.name.as_str().to_owned(),
        owner_id: workspace.owner_id.clone(),
        is_default: workspace.is_default,
        suspended: workspace.suspended,
        credit_pico: workspace.credit.map(Usd::pico),
        storage_used_bytes: signed(workspace.storage_used_bytes, "workspaces.storage_used_bytes", workspace.id)?,
        created_at: millis(workspace.created_at),
    })
}

fn to_workspace(row: Model) -> Result<Workspace, StoreError> {
    let id: WorkspaceId = parse(&row.id, "workspaces.id", &row.id)?;
    Ok(Workspace {
        id,
        name: WorkspaceName::try_new(&row.name).map_err(|_| corrupt("workspaces.name", id))?,
        owner_id: row.owner_id,
        is_default: row.is_default,
        suspended: row.suspended,
        credit: row.credit_pico.map(Usd::from_pico),
        storage_used_bytes: unsigned(row.storage_used_bytes, "workspaces.storage_used_bytes", id)?,
        created_at: moment(row.created_at, "workspaces.created_at", id)?,
    })
}
