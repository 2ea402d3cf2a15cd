//! API keys and their grants.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::api_key::{
    ApiKey, ApiKeyRepository, ApiKeyScope, KeyFilter, KeyGrant, KeyGrants, KeyIdentity, KeyInsertion, KeyReference,
    KeyUpdate, LastKeyRule, LastUnrestrictedKey, StoreKeyError,
};
use domain::audit::AuditDraft;
use domain::authority::{ManagementAccess, ManagementScope};
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::{ApiKeyId, WorkspaceId};
use domain::naming::ResourceName;
use domain::secret::ApiKeyHash;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QuerySelect,
    UpdateMany,
};

use super::key_queries::{has_secret, matching, newest_first, select_named};
use super::key_rows::{to_grant, to_key, to_row};
use super::rows::{NO_CHANGE, commit_change, unchanged, workspace_exists};
use crate::audit::{ManagedRow, RowChanges};
use crate::change_feed::LimitChange;
use crate::connections::Transaction;
use crate::convert::{hash, hash_column, key_column, key_id, millis, parse};
use crate::entities::api_keys::{Column, Entity, Model};
use crate::entities::{guardrails, workspaces};
use crate::errors::store_error;
use crate::statements::chunks;

repository! {
    /// Stores keys in the database, and reads grants without a cache.
    SeaOrmApiKeyRepository
}

impl SeaOrmApiKeyRepository {
    /// Adds a key; writing transactions run one after another, so a name that is free here stays so until the commit.
    async fn add(&self, key: &ApiKey, is_unique: bool, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        let transaction = self.database.begin().await?;
        if !has_workspaces(&transaction, &key.scope).await? {
            return Ok(KeyInsertion::UnknownWorkspace);
        }
        if !has_guardrail(&transaction, key).await? {
            return Ok(KeyInsertion::UnknownGuardrail);
        }
        if is_unique && has_name(&transaction, key).await? {
            return Ok(KeyInsertion::NameTaken);
        }
        let mut rows = RowChanges::default();
        insert(&transaction, key, &mut rows).await?;
        commit_change(transaction, self.database.now(), NO_CHANGE, audit, &rows).await?;
        Ok(KeyInsertion::Inserted)
    }

    /// Changes a live key and writes the change to the feed.
    async fn change(
        &self,
        id: ApiKeyId,
        change: UpdateMany<Entity>,
        limits: LimitChange,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<Change, StoreError> {
        let transaction = self.database.begin().await?;
        self.change_in(transaction, id, change, limits, rule, audit).await
    }

    /// Like [`Self::change`], in a transaction.
    async fn change_in(
        &self,
        transaction: Transaction,
        id: ApiKeyId,
        change: UpdateMany<Entity>,
        limits: LimitChange,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<Change, StoreError> {
        let before = Entity::find_by_id(key_column(id)).filter(Column::Deleted.eq(false));
        let Some(before) = before.one(&transaction).await.map_err(store_error)? else { return Ok(Change::Rejected) };
        let changed = change
            .filter(Column::Id.eq(key_column(id)))
            .filter(Column::Deleted.eq(false))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if changed.rows_affected == 0 {
            return Ok(Change::Rejected);
        }
        if rule == LastKeyRule::Enforced && !is_unrestricted_left(&transaction, &before, self.database.now()).await? {
            return Ok(Change::OfLastKey);
        }
        let mut rows = RowChanges::default();
        rows.record_change(&transaction, &before).await?;
        // The hashes under which caches store it: those before a rotation.
        let mut subjects = Vec::with_capacity(2);
        for secret in [Some(&before.hash), before.previous_hash.as_ref()].into_iter().flatten() {
            subjects.push(ChangeSubject::Key(hash(secret, "api_keys.hash", id)?));
        }
        commit_change(transaction, self.database.now(), (&subjects, limits), audit, &rows).await?;
        Ok(Change::Committed)
    }
}

/// The result of a change of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Committed,
    /// The key is not live, or differs.
    Rejected,
    /// It would leave no unrestricted key.
    OfLastKey,
}

impl Change {
    fn is_committed(self) -> Result<bool, LastUnrestrictedKey> {
        if self == Self::OfLastKey { Err(LastUnrestrictedKey) } else { Ok(self == Self::Committed) }
    }
}

#[async_trait]
impl ApiKeyRepository for SeaOrmApiKeyRepository {
    async fn insert(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        self.add(key, false, audit).await
    }

    async fn insert_unique(&self, key: &ApiKey, audit: &AuditDraft) -> Result<KeyInsertion, StoreError> {
        self.add(key, true, audit).await
    }

    async fn find(&self, name: &KeyReference) -> Result<Option<ApiKey>, StoreError> {
        let query = Entity::find().filter(named(name)).filter(Column::Deleted.eq(false));
        let found = query.one(self.database.readers()?).await.map_err(store_error)?;
        let now = self.database.now();
        found.map(|row| to_key(row, now)).transpose()
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<ApiKey>, StoreError> {
        let now = self.database.now();
        let query = select_named(name, within, now).limit(ResourceName::MAX_MATCHES as u64);
        let rows = query.all(self.database.readers()?).await.map_err(store_error)?;
        rows.into_iter().map(|row| to_key(row, now)).collect()
    }

    async fn page(&self, filter: &KeyFilter, offset: u64, limit: u64) -> Result<(Vec<ApiKey>, u64), StoreError> {
        let snapshot = self.database.snapshot().await?;
        let query = Entity::find().filter(matching(filter));
        let total = query.clone().count(&snapshot).await.map_err(store_error)?;
        let rows = newest_first(query).offset(offset).limit(limit).all(&snapshot).await.map_err(store_error)?;
        let now = self.database.now();
        Ok((rows.into_iter().map(|row| to_key(row, now)).collect::<Result<_, _>>()?, total))
    }

    async fn identities(&self, names: &[KeyReference]) -> Result<Vec<KeyIdentity>, StoreError> {
        let mut found = BTreeSet::new();
        for (column, names) in by_column(names) {
            for piece in chunks(&names) {
                let rows: Vec<(Vec<u8>, Vec<u8>, Option<String>)> = Entity::find()
                    .select_only()
                    .columns([Column::Id, Column::Hash, Column::WorkspaceId])
                    .filter(column.is_in(piece.iter().cloned()))
                    .into_tuple()
                    .all(self.database.readers()?)
                    .await
                    .map_err(store_error)?;
                for (id, bytes, workspace) in rows {
                    let id = key_id(&id, "api_keys.id", "a key")?;
                    let hash = hash(&bytes, "api_keys.hash", id)?;
                    let workspace_id = workspace.map(|text| parse(&text, "api_keys.workspace_id", id)).transpose()?;
                    found.insert(KeyIdentity { id, hash, workspace_id });
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<ApiKey>, StoreError> {
        let whose = match workspace_id {
            Some(id) => Column::WorkspaceId.eq(id.to_string()),
            None => Column::WorkspaceId.is_null(),
        };
        let query = newest_first(Entity::find().filter(whose).filter(Column::Deleted.eq(false)));
        let rows = query.all(self.database.readers()?).await.map_err(store_error)?;
        let now = self.database.now();
        rows.into_iter().map(|row| to_key(row, now)).collect()
    }

    async fn update(
        &self,
        before: &ApiKey,
        after: &ApiKey,
        rule: LastKeyRule,
        audit: &AuditDraft,
    ) -> Result<KeyUpdate, StoreKeyError> {
        let changeable = |key: &ApiKey| {
            let scope = key.scope.management().cloned();
            let state = (key.disabled, key.guardrail_id, key.users.clone());
            (key.name.clone(), scope, key.expires_at.map(millis), key.limit, key.rates, state)
        };
        if changeable(before) == changeable(after) {
            let found = ApiKeyRepository::find(self, &after.id.into()).await?;
            let is_equal = found.is_some_and(|found| changeable(&found) == changeable(after));
            return Ok(if is_equal { KeyUpdate::Updated } else { KeyUpdate::Conflict });
        }
        let transaction = self.database.begin().await?;
        if before.scope != after.scope && !has_workspaces(&transaction, &after.scope).await? {
            return Ok(KeyUpdate::UnknownWorkspace);
        }
        let mut change = update_columns(&to_row(before), to_row(after));
        if before.guardrail_id != after.guardrail_id {
            if !has_guardrail(&transaction, after).await? {
                return Ok(KeyUpdate::UnknownGuardrail);
            }
            let assigned = after.guardrail_id.map(|_| (millis(self.database.now()), audit.actor.name.clone()));
            let (at, actor) = assigned.unzip();
            change = change
                .col_expr(Column::GuardrailAssignedAt, Expr::value(at))
                .col_expr(Column::GuardrailAssignedBy, Expr::value(actor));
        }
        let limits = LimitChange::of(before.limit != after.limit);
        let changed = self.change_in(transaction, after.id, change, limits, rule, audit).await?;
        Ok(if changed.is_committed()? { KeyUpdate::Updated } else { KeyUpdate::Conflict })
    }

    async fn rotate(&self, before: &ApiKey, after: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        let row = to_row(after);
        let rotation = Entity::update_many()
            .filter(is_state_of(&to_row(before)).add(Column::Hash.eq(hash_column(&before.hash))))
            .col_expr(Column::Hash, Expr::value(hash_column(&after.hash)))
            .col_expr(Column::Label, Expr::value(after.label.as_str()))
            .col_expr(Column::PreviousHash, Expr::value(row.previous_hash))
            .col_expr(Column::PreviousExpiresAt, Expr::value(row.previous_expires_at));
        let change = self.change(before.id, rotation, LimitChange::None, LastKeyRule::Waived, audit).await?;
        Ok(change == Change::Committed)
    }

    async fn delete(&self, before: &ApiKey, rule: LastKeyRule, audit: &AuditDraft) -> Result<bool, StoreKeyError> {
        let deletion = Entity::update_many()
            .filter(is_state_of(&to_row(before)))
            .col_expr(Column::Deleted, Expr::value(true))
            // A deleted key has no guardrail, so that guardrails count and change only live ones.
            .col_expr(Column::GuardrailId, Expr::value(None::<String>))
            .col_expr(Column::PreviousHash, Expr::value(None::<Vec<u8>>))
            .col_expr(Column::PreviousExpiresAt, Expr::value(None::<i64>));
        Ok(self.change(before.id, deletion, LimitChange::None, rule, audit).await?.is_committed()?)
    }
}

#[async_trait]
impl KeyGrants for SeaOrmApiKeyRepository {
    async fn find(&self, hash: &ApiKeyHash) -> Result<Option<Arc<KeyGrant>>, StoreError> {
        let found = Entity::find()
            .filter(has_secret(hash_column(hash), self.database.now()))
            .filter(Column::Deleted.eq(false))
            .find_also_related(workspaces::Entity)
            .one(self.database.readers()?)
            .await
            .map_err(store_error)?;
        found.map(|(key, workspace)| to_grant(*hash, &key, workspace).map(Arc::new)).transpose()
    }
}

/// Returns true if the workspaces of the scope exist.
async fn has_workspaces(connection: &impl ConnectionTrait, scope: &ApiKeyScope) -> Result<bool, StoreError> {
    let named = scope.management().and_then(ManagementScope::workspaces).unwrap_or_default();
    for id in scope.workspace_id().iter().chain(named) {
        if !workspace_exists(connection, *id).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if the guardrail of the key exists in its workspace, or it has none.
async fn has_guardrail(connection: &impl ConnectionTrait, key: &ApiKey) -> Result<bool, StoreError> {
    let Some(id) = key.guardrail_id else { return Ok(true) };
    let Some(workspace) = key.scope.workspace_id() else { return Ok(false) };
    let query = guardrails::Entity::find_by_id(id.to_string())
        .filter(guardrails::Column::WorkspaceId.eq(workspace.to_string()));
    Ok(query.one(connection).await.map_err(store_error)?.is_some())
}

/// Returns the condition that the changeable columns equal those of the row.
fn is_state_of(row: &Model) -> Condition {
    Condition::all()
        .add(Column::Name.eq(row.name.as_str()))
        .add(Column::Disabled.eq(row.disabled))
        .add(unchanged(Column::ManagementAccess, row.management_access.clone()))
        .add(unchanged(Column::ManagementWorkspaces, row.management_workspaces.clone()))
        .add(unchanged(Column::LimitPico, row.limit_pico))
        .add(unchanged(Column::LimitReset, row.limit_reset.clone()))
        .add(unchanged(Column::ExpiresAt, row.expires_at))
        .add(unchanged(Column::RequestsPerMinute, row.requests_per_minute))
        .add(unchanged(Column::TokensPerMinute, row.tokens_per_minute))
        .add(unchanged(Column::GuardrailId, row.guardrail_id.clone()))
        .add(unchanged(Column::CreatorUserId, row.creator_user_id.clone()))
        .add(unchanged(Column::ExternalUser, row.external_user.clone()))
}

/// Returns the statement that replaces the changeable columns if they equal `was`. Disabling ends a previous secret.
fn update_columns(was: &Model, row: Model) -> UpdateMany<Entity> {
    let change = Entity::update_many()
        .filter(is_state_of(was))
        .col_expr(Column::Name, Expr::value(row.name))
        .col_expr(Column::Disabled, Expr::value(row.disabled))
        .col_expr(Column::ManagementAccess, Expr::value(row.management_access))
        .col_expr(Column::ManagementWorkspaces, Expr::value(row.management_workspaces))
        .col_expr(Column::LimitPico, Expr::value(row.limit_pico))
        .col_expr(Column::LimitReset, Expr::value(row.limit_reset))
        .col_expr(Column::ExpiresAt, Expr::value(row.expires_at))
        .col_expr(Column::RequestsPerMinute, Expr::value(row.requests_per_minute))
        .col_expr(Column::TokensPerMinute, Expr::value(row.tokens_per_minute))
        .col_expr(Column::GuardrailId, Expr::value(row.guardrail_id))
        .col_expr(Column::CreatorUserId, Expr::value(row.creator_user_id))
        .col_expr(Column::ExternalUser, Expr::value(row.external_user))
        .col_expr(Column::UpdatedAt, Expr::value(row.updated_at));
    if !row.disabled {
        return change;
    }
    change
        .col_expr(Column::PreviousHash, Expr::value(None::<Vec<u8>>))
        .col_expr(Column::PreviousExpiresAt, Expr::value(None::<i64>))
}

/// Returns the condition for a key reference.
fn named(name: &KeyReference) -> SimpleExpr {
    match name {
        KeyReference::Id(id) => Column::Id.eq(key_column(*id)),
        KeyReference::Hash(hash) => Column::Hash.eq(hash_column(hash)),
    }
}

/// Converts references to columns, grouped by kind: a statement compares only one column, which uses its index and
/// keeps the number of prepared statements small.
pub(super) fn by_column(names: &[KeyReference]) -> [(Column, Vec<Vec<u8>>); 2] {
    let (mut ids, mut hashes) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            KeyReference::Id(id) => ids.push(key_column(*id)),
            KeyReference::Hash(hash) => hashes.push(hash_column(hash)),
        }
    }
    [(Column::Id, ids), (Column::Hash, hashes)]
}

/// Inserts a key in the caller's transaction. Ids and digests of deleted keys are never reused.
pub(super) async fn insert(
    transaction: &impl ConnectionTrait,
    key: &ApiKey,
    rows: &mut RowChanges,
) -> Result<(), StoreError> {
    let row = to_row(key).sealed();
    rows.record_row(None, Some(&row));
    let row = row.into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(())
}

/// Returns true if a live key of the same scope has the key's name.
async fn has_name(connection: &impl ConnectionTrait, key: &ApiKey) -> Result<bool, StoreError> {
    let query = Entity::find()
        .filter(unchanged(Column::WorkspaceId, key.scope.workspace_id().map(|id| id.to_string())))
        .filter(Column::Name.eq(key.name.as_str()))
        .filter(Column::Deleted.eq(false));
    Ok(query.one(connection).await.map_err(store_error)?.is_some())
}

/// Returns true if a management key was ever created.
pub(super) async fn any_management_key(connection: &impl ConnectionTrait) -> Result<bool, StoreError> {
    let query = Entity::find().filter(Column::WorkspaceId.is_null());
    Ok(query.one(connection).await.map_err(store_error)?.is_some())
}

/// Returns true if a key other than an enabled and unexpired unrestricted one changed, or if one is left: another one,
/// without an expiry if the key had none, or the key itself, whose expiry is no earlier.
async fn is_unrestricted_left(
    connection: &impl ConnectionTrait,
    before: &Model,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let is_unrestricted = before.management_access.as_deref() == Some(ManagementAccess::Write.as_str())
        && before.management_workspaces.is_none();
    let is_expired = before.expires_at.is_some_and(|at| at <= millis(now));
    if !is_unrestricted || before.disabled || is_expired {
        return Ok(true);
    }
    let mut is_valid = Condition::any().add(Column::ExpiresAt.is_null());
    if let Some(until) = before.expires_at {
        let is_other = Condition::all().add(Column::Id.ne(before.id.clone())).add(Column::ExpiresAt.gt(millis(now)));
        is_valid = is_valid.add(Column::ExpiresAt.gte(until)).add(is_other);
    }
    let query = Entity::find()
        .filter(Column::ManagementAccess.eq(ManagementAccess::Write.as_str()))
        .filter(Column::ManagementWorkspaces.is_null())
        .filter(Column::Disabled.eq(false))
        .filter(Column::Deleted.eq(false))
        .filter(is_valid);
    Ok(query.one(connection).await.map_err(store_error)?.is_some())
}
