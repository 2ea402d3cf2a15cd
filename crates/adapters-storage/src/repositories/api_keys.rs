//! API keys, and what they grant.

use std::sync::Arc;

use async_trait::async_trait;
use domain::api_key::{ApiKey, ApiKeyHash, ApiKeyName, ApiKeyRepository, ApiKeyScope, GrantScope, KeyGrant, KeyGrants};
use domain::audit::AuditDraft;
use domain::budget::{ResetInterval, SpendLimit};
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use domain::rate::RateLimits;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    UpdateMany, Value,
};

use crate::audit::append;
use crate::audit_rows::{ManagedRow, RowChanges};
use crate::change_feed::{LimitChange, record_changes};
use crate::convert::{hash, hash_column, millis, moment, parse};
use crate::database::Database;
use crate::entities::api_keys::{Column, Entity, Model};
use crate::entities::workspaces;
use crate::errors::{corrupt, store_error};

/// Keeps keys in the database, and reads there what a key grants, each time anew.
#[derive(Clone)]
pub struct SeaOrmApiKeyRepository {
    database: Database,
}

impl SeaOrmApiKeyRepository {
    /// Over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Makes one change to a live key and writes it to the change feed.
    async fn change(
        &self,
        hash: &ApiKeyHash,
        change: UpdateMany<Entity>,
        limits: LimitChange,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let before = Entity::find_by_id(hash_column(hash)).filter(Column::Deleted.eq(false));
        let Some(before) = before.one(&transaction).await.map_err(store_error)? else { return Ok(false) };
        let changed = change
            .filter(Column::Hash.eq(hash_column(hash)))
            .filter(Column::Deleted.eq(false))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if changed.rows_affected == 0 {
            return Ok(false);
        }
        let mut rows = RowChanges::default();
        rows.key_changed(&transaction, &before).await?;
        let now = self.database.now();
        record_changes(&transaction, now, &[ChangeSubject::Key(*hash)], limits).await?;
        append(&transaction, audit, now, &rows).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(true)
    }
}

const INFERENCE: &str = "inference";
const MANAGEMENT: &str = "management";

#[async_trait]
impl ApiKeyRepository for SeaOrmApiKeyRepository {
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        if let ApiKeyScope::Inference(workspace_id) = key.scope
            && !super::workspaces::exists(&transaction, workspace_id).await?
        {
            return Ok(false);
        }
        let mut rows = RowChanges::default();
        insert(&transaction, key, &mut rows).await?;
        append(&transaction, audit, self.database.now(), &rows).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(true)
    }

    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<ApiKey>, StoreError> {
        let query = Entity::find_by_id(hash_column(hash)).filter(Column::Deleted.eq(false));
        let found = query.one(self.database.readers()?).await.map_err(store_error)?;
        found.map(to_key).transpose()
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError> {
        let whose = match workspace_id {
            Some(id) => Column::WorkspaceId.eq(id.to_string()),
            None => Column::WorkspaceId.is_null(),
        };
        let rows = Entity::find()
            .filter(whose)
            .filter(Column::Deleted.eq(false))
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::Hash)
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_key).collect()
    }

    async fn set_disabled(&self, hash: &ApiKeyHash, disabled: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let other = Entity::update_many().filter(Column::Disabled.ne(disabled));
        let change = other.col_expr(Column::Disabled, Expr::value(disabled));
        let changed = self.change(hash, change, LimitChange::None, audit).await?;
        // What is so already is not changed.
        Ok(changed || ApiKeyRepository::find(self, hash).await?.is_some())
    }

    async fn update(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let (was, row) = (to_row(before), to_row(after));
        if was == row {
            return Ok(ApiKeyRepository::find(self, &after.hash).await?.is_some_and(|found| to_row(&found) == row));
        }
        let change = Entity::update_many()
            .filter(Column::Name.eq(was.name))
            .filter(unchanged(Column::LimitPico, was.limit_pico))
            .filter(unchanged(Column::LimitReset, was.limit_reset))
            .filter(unchanged(Column::ExpiresAt, was.expires_at))
            .filter(unchanged(Column::RequestsPerMinute, was.requests_per_minute))
            .filter(unchanged(Column::TokensPerMinute, was.tokens_per_minute))
            .col_expr(Column::Name, Expr::value(row.name))
            .col_expr(Column::LimitPico, Expr::value(row.limit_pico))
            .col_expr(Column::LimitReset, Expr::value(row.limit_reset))
            .col_expr(Column::ExpiresAt, Expr::value(row.expires_at))
            .col_expr(Column::RequestsPerMinute, Expr::value(row.requests_per_minute))
            .col_expr(Column::TokensPerMinute, Expr::value(row.tokens_per_minute));
        self.change(&after.hash, change, LimitChange::of(before.limit != after.limit), audit).await
    }

    async fn delete(&self, hash: &ApiKeyHash, audit: &AuditDraft) -> Result<bool, StoreError> {
        let deletion = Entity::update_many()
            .col_expr(Column::Deleted, Expr::value(true))
            // A key that is gone holds nothing, so that guardrails count and change only live ones.
            .col_expr(Column::GuardrailId, Expr::value(None::<String>));
        self.change(hash, deletion, LimitChange::None, audit).await
    }
}

#[async_trait]
impl KeyGrants for SeaOrmApiKeyRepository {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let found = Entity::find_by_id(hash_column(hash))
            .filter(Column::Deleted.eq(false))
            .find_also_related(workspaces::Entity)
            .one(self.database.readers()?)
            .await
            .map_err(store_error)?;
        found.map(|(key, workspace)| to_grant(*hash, &key, workspace).map(Arc::new)).transpose()
    }
}

/// The column still holds that.
pub(super) fn unchanged<T: Into<Value>>(column: impl ColumnTrait, value: Option<T>) -> SimpleExpr {
    value.map_or_else(|| column.is_null(), |value| column.eq(value))
}

/// Adds a key in a transaction of the caller's. The digest of a deleted key is taken for ever.
pub(super) async fn insert(
    transaction: &DatabaseTransaction,
    key: &ApiKey,
    rows: &mut RowChanges,
) -> Result<(), StoreError> {
    let row = to_row(key).sealed();
    rows.key(None, Some(&row));
    let row = row.into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(())
}

/// True where a management key was ever made.
pub(super) async fn any_management_key(connection: &impl ConnectionTrait) -> Result<bool, StoreError> {
    let query = Entity::find().filter(Column::WorkspaceId.is_null());
    Ok(query.one(connection).await.map_err(store_error)?.is_some())
}

fn to_row(key: &ApiKey) -> Model {
    let limit = key.limit.as_ref();
    Model {
        hash: hash_column(&key.hash),
        label: key.label.clone(),
        name: key.name.as_str().to_owned(),
        scope: match key.scope {
            ApiKeyScope::Inference(_) => INFERENCE,
            ApiKeyScope::Management => MANAGEMENT,
        }
        .to_owned(),
        workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
        disabled: key.disabled,
        deleted: false,
        expires_at: key.expires_at.map(millis),
        limit_pico: limit.map(|limit| limit.amount.pico()),
        limit_reset: limit.and_then(|limit| limit.reset).map(|reset| reset.as_str().to_owned()),
        guardrail_id: key.guardrail_id.map(|id| id.to_string()),
        created_at: millis(key.created_at),
        requests_per_minute: key.rates.requests_per_minute.map(i64::from),
        tokens_per_minute: key.rates.tokens_per_minute.map(i64::from),
        guardrail_assigned_at: None,
        guardrail_assigned_by: None,
        audit_hash: None,
    }
}

fn to_key(row: Model) -> Result<ApiKey, StoreError> {
    let hash = hash(&row.hash, "api_keys.hash", &row.label)?;
    let expires_at = row.expires_at.map(|at| moment(at, "api_keys.expires_at", hash)).transpose()?;
    let guardrail_id = row.guardrail_id.as_ref().map(|id| parse(id, "api_keys.guardrail_id", hash)).transpose()?;
    Ok(ApiKey {
        hash,
        scope: to_scope(hash, &row)?,
        limit: to_limit(hash, &row)?,
        rates: rates(row.requests_per_minute, row.tokens_per_minute, "api_keys.requests_per_minute", hash)?,
        label: row.label,
        name: ApiKeyName::try_new(&row.name).map_err(|_| corrupt("api_keys.name", hash))?,
        disabled: row.disabled,
        expires_at,
        guardrail_id,
        created_at: moment(row.created_at, "api_keys.created_at", hash)?,
    })
}

fn to_scope(hash: ApiKeyHash, row: &Model) -> Result<ApiKeyScope, StoreError> {
    match (row.scope.as_str(), &row.workspace_id) {
        (INFERENCE, Some(id)) => Ok(ApiKeyScope::Inference(parse(id, "api_keys.workspace_id", hash)?)),
        (MANAGEMENT, None) => Ok(ApiKeyScope::Management),
        _ => Err(corrupt("api_keys.scope", hash)),
    }
}

fn to_limit(hash: ApiKeyHash, row: &Model) -> Result<Option<SpendLimit>, StoreError> {
    let reset = match row.limit_reset.as_deref() {
        Some(name) => Some(ResetInterval::from_name(name).ok_or_else(|| corrupt("api_keys.limit_reset", hash))?),
        None => None,
    };
    Ok(row.limit_pico.map(|pico| SpendLimit { amount: Usd::from_pico(pico), reset }))
}

fn to_grant(hash: ApiKeyHash, row: &Model, workspace: Option<workspaces::Model>) -> Result<KeyGrant, StoreError> {
    let scope = match to_scope(hash, row)? {
        ApiKeyScope::Management => GrantScope::Management,
        ApiKeyScope::Inference(workspace_id) => {
            let workspace = workspace.ok_or_else(|| corrupt("api_keys.workspace_id", hash))?;
            let parse_id = |id: &Option<String>, column| id.as_ref().map(|id| parse(id, column, hash)).transpose();
            let limits = [
                row.limit_pico,
                workspace.credit_pico,
                workspace.budget_daily_pico,
                workspace.budget_weekly_pico,
                workspace.budget_monthly_pico,
                workspace.budget_lifetime_pico,
            ];
            GrantScope::Inference {
                workspace_id,
                workspace_suspended: workspace.suspended,
                owner_id: workspace.owner_id,
                guardrail_id: parse_id(&row.guardrail_id, "api_keys.guardrail_id")?,
                workspace_guardrail_id: parse_id(&workspace.default_guardrail_id, "workspaces.default_guardrail_id")?,
                limited: limits.iter().any(Option::is_some),
                rates: rates(row.requests_per_minute, row.tokens_per_minute, "api_keys.requests_per_minute", hash)?,
                workspace_rates: rates(
                    workspace.requests_per_minute,
                    workspace.tokens_per_minute,
                    "workspaces.requests_per_minute",
                    workspace_id,
                )?,
            }
        }
    };
    let expires_at = row.expires_at.map(|at| moment(at, "api_keys.expires_at", hash)).transpose()?;
    Ok(KeyGrant { hash, disabled: row.disabled, expires_at, scope })
}

/// Rates as two columns hold them.
pub(super) fn rates(
    requests: Option<i64>,
    tokens: Option<i64>,
    column: &str,
    row: impl std::fmt::Display,
) -> Result<RateLimits, StoreError> {
    let rate = |count: Option<i64>| count.map(|count| count.try_into().map_err(|_| corrupt(column, &row))).transpose();
    Ok(RateLimits { requests_per_minute: rate(requests)?, tokens_per_minute: rate(tokens)? })
}
