//! Guardrails and their assignments.

use async_trait::async_trait;
use domain::api_key::KeyReference;
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change::Change;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::guardrail::{
    AssignKeysError, Guardrail, GuardrailName, GuardrailRepository, GuardrailRules, GuardrailVersion, KeyAssignment,
    PlacedGuardrail, keys_assigned, keys_removed,
};
use domain::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use domain::naming::{NameError, ResourceName};
use domain::secret::ApiKeyHash;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::api_keys::by_column;
use super::assignments::{
    ASSIGNED_AT_ONCE, assign, find_assignable, find_holders, release, select_all_live_holders, select_live_holders,
    to_assignment,
};
use super::rows::{commit_change, is_within, set_guardrail, workspace_by_id, workspace_exists};
use crate::audit::{ManagedRow, RowChanges};
use crate::change_feed::LimitChange;
use crate::convert::{hash, key_column, key_id, millis, moment, parse, spend_limit};
use crate::entities::guardrails::{Column, Entity, Model};
use crate::entities::{api_keys, guardrail_versions, workspaces};
use crate::errors::{corrupt, store_error};
use crate::statements::{chunks, chunks_of};

repository! {
    /// Stores guardrails in the database.
    SeaOrmGuardrailRepository
}

#[async_trait]
impl GuardrailRepository for SeaOrmGuardrailRepository {
    async fn insert(&self, guardrail: &Guardrail, default: bool, audit: &AuditDraft) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        if !workspace_exists(&transaction, guardrail.workspace_id).await? {
            return Ok(false);
        }
        let row = to_row(guardrail)?.sealed();
        let mut rows = RowChanges::default();
        rows.record_row(None, Some(&row));
        keep_version(&transaction, &row, row.created_at, audit).await?;
        let (id, workspace_id) = (row.id.clone(), row.workspace_id.clone());
        Entity::insert(row.into_active_model()).exec_without_returning(&transaction).await.map_err(store_error)?;
        let is_moved = default && set_guardrail(&transaction, &workspace_id, Some(&id), &mut rows).await? == Some(true);
        let subjects = is_moved.then_some(ChangeSubject::Workspace(guardrail.workspace_id));
        commit_change(transaction, self.database.now(), (subjects.as_slice(), LimitChange::None), audit, &rows).await?;
        Ok(true)
    }

    async fn update(
        &self,
        before: &PlacedGuardrail,
        after: &PlacedGuardrail,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let (was_default, PlacedGuardrail { guardrail, workspace_default }) = (before.workspace_default, after);
        let row = to_row(guardrail)?;
        let transaction = self.database.begin().await?;
        let Some(before) = find_unchanged(&transaction, before).await? else { return Ok(false) };
        Entity::update_many()
            .col_expr(Column::Name, Expr::value(row.name.clone()))
            .col_expr(Column::LimitPico, Expr::value(row.limit_pico))
            .col_expr(Column::LimitReset, Expr::value(row.limit_reset.clone()))
            .col_expr(Column::Rules, Expr::value(row.rules.clone()))
            .col_expr(Column::Version, Expr::value(row.version))
            .col_expr(Column::UpdatedAt, Expr::value(row.updated_at))
            .filter(Column::Id.eq(row.id.clone()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        let now = self.database.now();
        let changed_at = row.updated_at.unwrap_or_else(|| millis(now));
        let mut rows = RowChanges::default();
        rows.record_change(&transaction, &before).await?;
        keep_version(&transaction, &row, changed_at, audit).await?;
        let is_moved = was_default != *workspace_default;
        if is_moved {
            let default = workspace_default.then_some(row.id.as_str());
            set_guardrail(&transaction, &row.workspace_id, default, &mut rows).await?;
        }
        let workspace = is_moved.then_some(ChangeSubject::Workspace(guardrail.workspace_id));
        let subjects: Vec<_> = workspace.into_iter().chain([ChangeSubject::Guardrail(guardrail.id)]).collect();
        let limits = (&before.limit_pico, &before.limit_reset) != (&row.limit_pico, &row.limit_reset);
        commit_change(transaction, now, (&subjects, LimitChange::of(limits)), audit, &rows).await?;
        Ok(true)
    }

    async fn versions(&self, id: GuardrailId, newest: u32, limit: u64) -> Result<Vec<GuardrailVersion>, StoreError> {
        let Some(row) = find(self.database.readers()?, id).await? else { return Ok(Vec::new()) };
        let kept = guardrail_versions::Entity::find()
            .filter(guardrail_versions::Column::GuardrailId.eq(id.to_string()))
            .filter(guardrail_versions::Column::Version.lte(i64::from(newest)))
            .order_by_desc(guardrail_versions::Column::Version)
            .limit(limit)
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        kept.into_iter().map(|version| to_version(&row, version)).collect()
    }

    async fn find(&self, id: GuardrailId) -> Result<Option<Guardrail>, StoreError> {
        let found = find(self.database.readers()?, id).await?;
        found.as_ref().map(to_guardrail).transpose()
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Guardrail>, StoreError> {
        let has_name = match name.id::<GuardrailId>() {
            Some(id) => Column::Id.eq(id.to_string()),
            None => Column::Name.eq(name.as_str()),
        };
        let query = Entity::find().filter(has_name).filter(is_within(Column::WorkspaceId, within));
        let query = query.order_by_desc(Column::CreatedAt).order_by_desc(Column::Id);
        let query = query.limit(ResourceName::MAX_MATCHES as u64);
        let rows = query.all(self.database.readers()?).await.map_err(store_error)?;
        rows.iter().map(to_guardrail).collect()
    }

    async fn list(&self, workspace_id: WorkspaceId) -> Result<Vec<Guardrail>, StoreError> {
        let rows = Entity::find()
            .filter(Column::WorkspaceId.eq(workspace_id.to_string()))
            .order_by_desc(Column::CreatedAt)
            .order_by_desc(Column::Id)
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        rows.iter().map(to_guardrail).collect()
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<PlacedGuardrail>, u64), StoreError> {
        let transaction = self.database.snapshot().await?;
        let query = Entity::find().filter(is_within(Column::WorkspaceId, within));
        let total = query.clone().count(&transaction).await.map_err(store_error)?;
        let query = query.order_by_desc(Column::CreatedAt).order_by_desc(Column::Id).offset(offset).limit(limit);
        let rows = query.all(&transaction).await.map_err(store_error)?;
        let defaults: Vec<Option<String>> = workspaces::Entity::find()
            .select_only()
            .column(workspaces::Column::DefaultGuardrailId)
            .filter(workspaces::Column::Id.is_in(rows.iter().map(|row| row.workspace_id.as_str())))
            .into_tuple()
            .all(&transaction)
            .await
            .map_err(store_error)?;
        let placed = |row: &Model| {
            let workspace_default = defaults.iter().flatten().any(|default| *default == row.id);
            Ok(PlacedGuardrail { guardrail: to_guardrail(row)?, workspace_default })
        };
        Ok((rows.iter().map(placed).collect::<Result<_, StoreError>>()?, total))
    }

    async fn delete(&self, before: &PlacedGuardrail, audit: &AuditDraft) -> Result<bool, StoreError> {
        let PlacedGuardrail { guardrail: Guardrail { id, workspace_id, .. }, workspace_default } = *before;
        let transaction = self.database.begin().await?;
        let Some(before) = find_unchanged(&transaction, before).await? else { return Ok(false) };
        let mut rows = RowChanges::default();
        let mut freed = Vec::new();
        for (key, digest) in find_holders(&transaction, &before.id).await? {
            rows.record_assignment(&key, Some(&before.id), None);
            freed.push(hash(&digest, "api_keys.hash", id)?);
        }
        rows.record_row(Some(&before), None);
        api_keys::Entity::update_many()
            .col_expr(api_keys::Column::GuardrailId, Expr::value(None::<String>))
            .filter(api_keys::Column::GuardrailId.eq(id.to_string()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if workspace_default {
            set_guardrail(&transaction, &before.workspace_id, None, &mut rows).await?;
        }
        guardrail_versions::Entity::delete_many()
            .filter(guardrail_versions::Column::GuardrailId.eq(id.to_string()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        Entity::delete_by_id(id.to_string()).exec(&transaction).await.map_err(store_error)?;
        let mut subjects = vec![ChangeSubject::Guardrail(id)];
        subjects.extend(workspace_default.then_some(ChangeSubject::Workspace(workspace_id)));
        subjects.extend(ChangeSubject::keys_of(workspace_id, &freed));
        let limits = LimitChange::of(before.limit_pico.is_some());
        commit_change(transaction, self.database.now(), (&subjects, limits), audit, &rows).await?;
        Ok(true)
    }

    async fn assign_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        let transaction = self.database.begin().await?;
        let guardrail = find_accepted(&transaction, id, change).await?;
        let mut keys = find_assignable(&transaction, &guardrail.workspace_id, keys).await?;
        let holding = keys.len() as u64;
        keys.retain(|key| key.guardrail_id.as_ref() != Some(&guardrail.id));
        if keys.is_empty() {
            return Ok(holding);
        }
        let (now, actor) = (self.database.now(), change.by().actor());
        let mut rows = RowChanges::default();
        for piece in chunks_of(&keys, ASSIGNED_AT_ONCE) {
            for key in piece {
                rows.record_assignment(&key_column(key.id), key.guardrail_id.as_deref(), Some(&guardrail.id));
            }
            let ids = piece.iter().map(|key| key_column(key.id));
            assign(&transaction, &guardrail.id, ids, millis(now), actor).await?;
        }
        let workspace_id = parse(&guardrail.workspace_id, "guardrails.workspace_id", id)?;
        let hashes: Vec<ApiKeyHash> = keys.iter().map(|key| key.hash).collect();
        let changed: Vec<ApiKeyId> = keys.iter().map(|key| key.id).collect();
        let subjects = ChangeSubject::keys_of(workspace_id, &hashes);
        let audit = change.audited(keys_assigned(actor, id, &changed), &holding);
        commit_change(transaction, now, (&subjects, LimitChange::None), &audit, &rows).await?;
        Ok(holding)
    }

    async fn remove_keys<'a>(
        &self,
        id: GuardrailId,
        keys: &[KeyReference],
        change: &Change<'a, u64>,
    ) -> Result<u64, AssignKeysError> {
        let transaction = self.database.begin().await?;
        let guardrail = find_accepted(&transaction, id, change).await?;
        let (mut removed, mut hashes) = (Vec::new(), Vec::new());
        let mut rows = RowChanges::default();
        for (column, names) in by_column(keys) {
            for piece in chunks(&names) {
                // A key that was already removed under its other name has no guardrail anymore.
                let holders: Vec<(Vec<u8>, Vec<u8>)> = select_live_holders(id)
                    .select_only()
                    .columns([api_keys::Column::Id, api_keys::Column::Hash])
                    .filter(column.is_in(piece.iter().cloned()))
                    .into_tuple()
                    .all(&transaction)
                    .await
                    .map_err(store_error)?;
                for piece in chunks(&holders) {
                    release(&transaction, piece.iter().map(|(key, _)| key.clone())).await?;
                }
                for (key, digest) in holders {
                    rows.record_assignment(&key, Some(&id.to_string()), None);
                    let key = key_id(&key, "api_keys.id", "a key")?;
                    removed.push(key);
                    hashes.push(hash(&digest, "api_keys.hash", key)?);
                }
            }
        }
        let count = removed.len() as u64;
        if !removed.is_empty() {
            removed.sort_unstable();
            let workspace_id = parse(&guardrail.workspace_id, "guardrails.workspace_id", id)?;
            let subjects = ChangeSubject::keys_of(workspace_id, &hashes);
            let audit = change.audited(keys_removed(change.by().actor(), id, &removed), &count);
            commit_change(transaction, self.database.now(), (&subjects, LimitChange::None), &audit, &rows).await?;
        }
        Ok(count)
    }

    async fn list_keys(
        &self,
        id: Option<GuardrailId>,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<KeyAssignment>, u64), StoreError> {
        // One transaction, so that the page and the count are consistent.
        let transaction = self.database.snapshot().await?;
        let query = match id {
            Some(id) => select_live_holders(id),
            None => select_all_live_holders(),
        };
        let query = query.filter(is_within(api_keys::Column::WorkspaceId, within));
        let total = query.clone().count(&transaction).await.map_err(store_error)?;
        // The order of the index, read backwards.
        let rows = query
            .order_by_desc(api_keys::Column::GuardrailId)
            .order_by_desc(api_keys::Column::GuardrailAssignedAt)
            .order_by_desc(api_keys::Column::Id)
            .offset(offset)
            .limit(limit)
            .all(&transaction)
            .await
            .map_err(store_error)?;
        let assignments = rows.into_iter().map(to_assignment).collect::<Result<_, _>>()?;
        Ok((assignments, total))
    }

    async fn count_keys(&self, id: GuardrailId) -> Result<u64, StoreError> {
        select_live_holders(id).count(self.database.readers()?).await.map_err(store_error)
    }
}

async fn find(connection: &impl ConnectionTrait, id: GuardrailId) -> Result<Option<Model>, StoreError> {
    Entity::find_by_id(id.to_string()).one(connection).await.map_err(store_error)
}

/// Returns the row of a guardrail whose version the caller accepts.
async fn find_accepted(
    transaction: &impl ConnectionTrait,
    id: GuardrailId,
    change: &Change<'_, u64>,
) -> Result<Model, AssignKeysError> {
    let row = find(transaction, id).await?.ok_or(NameError::Unknown)?;
    if change.is_conditional() {
        let guardrail = to_guardrail(&row)?;
        let workspace = workspace_by_id(guardrail.workspace_id).one(transaction).await.map_err(store_error)?;
        let default = workspace.and_then(|workspace| workspace.default_guardrail_id);
        let workspace_default = default.as_ref() == Some(&row.id);
        change.check_version(PlacedGuardrail { guardrail, workspace_default }.version())?;
    }
    Ok(row)
}

/// Returns the row of a guardrail if its version and its place as the default are still those.
async fn find_unchanged(
    transaction: &impl ConnectionTrait,
    before: &PlacedGuardrail,
) -> Result<Option<Model>, StoreError> {
    let PlacedGuardrail { guardrail: Guardrail { id, workspace_id, version, .. }, workspace_default } = before;
    let workspace = workspace_by_id(*workspace_id).one(transaction).await.map_err(store_error)?;
    let default = workspace.and_then(|workspace| workspace.default_guardrail_id);
    if (default == Some(id.to_string())) != *workspace_default {
        return Ok(None);
    }
    Ok(find(transaction, *id).await?.filter(|row| row.version == i64::from(*version)))
}

async fn keep_version(
    transaction: &impl ConnectionTrait,
    row: &Model,
    changed_at: i64,
    audit: &AuditDraft,
) -> Result<(), StoreError> {
    let version = guardrail_versions::Model {
        guardrail_id: row.id.clone(),
        version: row.version,
        name: row.name.clone(),
        rules: row.rules.clone(),
        limit_pico: row.limit_pico,
        limit_reset: row.limit_reset.clone(),
        changed_at,
        changed_by: audit.actor.name.clone(),
    };
    let insert = guardrail_versions::Entity::insert(version.into_active_model());
    insert.exec_without_returning(transaction).await.map_err(store_error).map(drop)
}

fn to_row(guardrail: &Guardrail) -> Result<Model, StoreError> {
    let budget = guardrail.budget.as_ref();
    Ok(Model {
        id: guardrail.id.to_string(),
        workspace_id: guardrail.workspace_id.to_string(),
        name: guardrail.name.as_str().to_owned(),
        created_at: millis(guardrail.created_at),
        updated_at: guardrail.updated_at.map(millis),
        limit_pico: budget.map(|budget| budget.amount.pico()),
        limit_reset: budget.and_then(|budget| budget.reset).map(|reset| reset.as_str().to_owned()),
        version: i64::from(guardrail.version),
        rules: serde_json::to_string(&guardrail.rules).map_err(|_| corrupt("guardrails.rules", guardrail.id))?,
        audit_hash: None,
    })
}

fn to_guardrail(row: &Model) -> Result<Guardrail, StoreError> {
    let id: GuardrailId = parse(&row.id, "guardrails.id", &row.id)?;
    Ok(Guardrail {
        id,
        workspace_id: parse(&row.workspace_id, "guardrails.workspace_id", id)?,
        name: GuardrailName::try_new(&row.name).map_err(|_| corrupt("guardrails.name", id))?,
        budget: spend_limit(row.limit_pico, row.limit_reset.as_deref(), "guardrails.limit_reset", id)?,
        rules: serde_json::from_str::<GuardrailRules>(&row.rules).map_err(|_| corrupt("guardrails.rules", id))?,
        version: row.version.try_into().map_err(|_| corrupt("guardrails.version", id))?,
        created_at: moment(row.created_at, "guardrails.created_at", id)?,
        updated_at: row.updated_at.map(|at| moment(at, "guardrails.updated_at", id)).transpose()?,
    })
}

/// Converts a version. `row` is the current guardrail; columns missing in a version never change.
fn to_version(row: &Model, version: guardrail_versions::Model) -> Result<GuardrailVersion, StoreError> {
    let first = version.version == 1;
    let then = Model {
        name: version.name,
        rules: version.rules,
        limit_pico: version.limit_pico,
        limit_reset: version.limit_reset,
        version: version.version,
        updated_at: (!first).then_some(version.changed_at),
        ..row.clone()
    };
    let guardrail = to_guardrail(&then)?;
    let changed_at = moment(version.changed_at, "guardrail_versions.changed_at", guardrail.id)?;
    Ok(GuardrailVersion { guardrail, changed_at, changed_by: version.changed_by })
}
