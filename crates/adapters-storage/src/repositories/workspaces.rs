//! Workspaces, and the status of their credit and budgets.

use async_trait::async_trait;
use domain::api_key::ApiKey;
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::money::Usd;
use domain::naming::ResourceName;
use domain::workspace::{
    Credit, CreditEdit, Workspace, WorkspaceContents, WorkspaceDeletion, WorkspaceError, WorkspaceInsertion,
    WorkspaceName, WorkspaceRepository, WorkspaceSlug, WorkspaceUpdate,
};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
    Select, UpdateMany,
};

use super::rows::{NO_CHANGE, commit_change, credit_base, is_within, rates, workspace_by_id};
use super::{api_keys, presets};
use crate::audit::{ManagedRow, RowChanges, append};
use crate::change_feed::LimitChange;
use crate::convert::{millis, moment, parse, signed, to_budgets, unsigned};
use crate::entities::workspaces::{Column, Entity, Model};
use crate::entities::{self, spend_counters};
use crate::errors::{corrupt, store_error};

repository! {
    /// Stores workspaces in the database.
    SeaOrmWorkspaceRepository
}

#[async_trait]
impl WorkspaceRepository for SeaOrmWorkspaceRepository {
    async fn insert(
        &self,
        workspace: &Workspace,
        unique_name: bool,
        audit: &AuditDraft,
    ) -> Result<WorkspaceInsertion, StoreError> {
        // Writing transactions run one after another, so a name that is free here stays so until the commit.
        let transaction = self.database.begin().await?;
        let is_taken = async |column: Column, text: &str| {
            let same = Entity::find().filter(column.eq(text)).filter(Column::DeletedAt.is_null());
            same.one(&transaction).await.map_err(store_error).map(|found| found.is_some())
        };
        if unique_name && is_taken(Column::Name, workspace.name.as_str()).await? {
            return Ok(WorkspaceInsertion::NameTaken);
        }
        if is_taken(Column::Slug, workspace.slug.as_str()).await? {
            return Ok(WorkspaceInsertion::SlugTaken);
        }
        let mut rows = RowChanges::default();
        insert(&transaction, workspace, false, &mut rows).await?;
        commit_change(transaction, self.database.now(), NO_CHANGE, audit, &rows).await?;
        Ok(WorkspaceInsertion::Inserted)
    }

    async fn free_slug(&self, slug: &WorkspaceSlug) -> Result<WorkspaceSlug, StoreError> {
        free_slug(self.database.readers()?, slug).await
    }

    async fn default_or_insert(&self, workspace: &Workspace, audit: &AuditDraft) -> Result<Workspace, StoreError> {
        if let Some(found) = find_default(self.database.readers()?).await? {
            return to_workspace(self.database.readers()?, found).await;
        }
        let transaction = self.database.begin().await?;
        if let Some(found) = find_default(&transaction).await? {
            return to_workspace(&transaction, found).await;
        }
        let slug = free_slug(&transaction, &workspace.slug).await?;
        let workspace = Workspace { is_default: true, slug, ..workspace.clone() };
        let mut rows = RowChanges::default();
        insert(&transaction, &workspace, true, &mut rows).await?;
        commit_change(transaction, self.database.now(), NO_CHANGE, audit, &rows).await?;
        Ok(workspace)
    }

    async fn bootstrap(&self, workspace: &Workspace, key: &ApiKey, audit: &AuditDraft) -> Result<bool, StoreError> {
        if key.scope.management().is_none() {
            return Err(StoreError::Corrupt("the first key must be a management key".to_owned()));
        }
        let transaction = self.database.begin().await?;
        let homeless = find_default(&transaction).await?.is_none();
        let mut rows = RowChanges::default();
        if homeless {
            let slug = free_slug(&transaction, &workspace.slug).await?;
            insert(&transaction, &Workspace { slug, ..workspace.clone() }, true, &mut rows).await?;
        }
        let first = !api_keys::any_management_key(&transaction).await?;
        if first {
            api_keys::insert(&transaction, key, &mut rows).await?;
        }
        if first || homeless {
            append(&transaction, audit, self.database.now(), &rows).await?;
        }
        transaction.commit().await?;
        Ok(first)
    }

    async fn find(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let found = workspace_by_id(id).one(self.database.readers()?).await.map_err(store_error)?;
        match found {
            Some(row) => to_workspace(self.database.readers()?, row).await.map(Some),
            None => Ok(None),
        }
    }

    async fn find_named(&self, name: &ResourceName, within: &ManagementScope) -> Result<Vec<Workspace>, StoreError> {
        let own = || oldest_first(within).limit(ResourceName::MAX_MATCHES as u64);
        if let Some(id) = name.id::<WorkspaceId>() {
            return self.read(own().filter(Column::Id.eq(id.to_string()))).await;
        }
        let of_slug = self.read(own().filter(Column::Slug.eq(name.as_str()))).await?;
        if of_slug.is_empty() { self.read(own().filter(Column::Name.eq(name.as_str()))).await } else { Ok(of_slug) }
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Workspace>, u64), StoreError> {
        let query = oldest_first(within);
        let total = query.clone().count(self.database.readers()?).await.map_err(store_error)?;
        Ok((self.read(query.offset(offset).limit(limit)).await?, total))
    }

    async fn list(&self) -> Result<Vec<Workspace>, StoreError> {
        self.read(oldest_first(&ManagementScope::UNRESTRICTED)).await
    }

    async fn update(
        &self,
        before: &Workspace,
        after: &Workspace,
        audit: &AuditDraft,
    ) -> Result<WorkspaceUpdate, StoreError> {
        let transaction = self.database.begin().await?;
        let found = workspace_by_id(before.id).lock_exclusive().one(&transaction).await.map_err(store_error)?;
        let Some(stored) = found else { return Ok(WorkspaceUpdate::Differs) };
        if !to_workspace(&transaction, stored.clone()).await?.has_settings_of(before) {
            return Ok(WorkspaceUpdate::Differs);
        }
        if after.slug != before.slug && free_slug(&transaction, &after.slug).await? != after.slug {
            return Ok(WorkspaceUpdate::SlugTaken);
        }
        if let Some(id) = after.default_guardrail_id {
            let own = entities::guardrails::Entity::find_by_id(id.to_string())
                .filter(entities::guardrails::Column::WorkspaceId.eq(stored.id.as_str()));
            if own.one(&transaction).await.map_err(store_error)?.is_none() {
                return Ok(WorkspaceUpdate::UnknownGuardrail);
            }
        }
        set_settings(after).filter(Column::Id.eq(stored.id.as_str())).exec(&transaction).await.map_err(store_error)?;
        let mut rows = RowChanges::default();
        rows.record_change(&transaction, &stored).await?;
        let limits = LimitChange::of(before.budgets != after.budgets);
        let subjects = [ChangeSubject::Workspace(before.id)];
        commit_change(transaction, self.database.now(), (&subjects, limits), audit, &rows).await?;
        Ok(WorkspaceUpdate::Updated)
    }

    async fn delete(
        &self,
        before: &Workspace,
        with_presets: bool,
        container_files: u64,
        audit: &AuditDraft,
    ) -> Result<WorkspaceDeletion, StoreError> {
        let (transaction, id, expected) = (self.database.begin().await?, before.id, before);
        let Some(before) = workspace_by_id(id).one(&transaction).await.map_err(store_error)? else {
            return Ok(WorkspaceDeletion::Unknown);
        };
        if !to_workspace(&transaction, before.clone()).await?.has_settings_of(expected) {
            return Ok(WorkspaceDeletion::Differs);
        }
        if before.is_default {
            return Ok(WorkspaceDeletion::IsDefault);
        }
        if with_presets {
            presets::delete_of_workspace(&transaction, &before.id).await?;
        }
        let contents = WorkspaceContents { container_files, ..contents(&transaction, &before.id).await? };
        if !contents.is_empty() {
            return Ok(WorkspaceDeletion::NotEmpty(contents));
        }
        let now = self.database.now();
        Entity::update_many()
            .col_expr(Column::DeletedAt, Expr::value(millis(now)))
            .filter(Column::Id.eq(before.id.as_str()))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        let mut rows = RowChanges::default();
        rows.record_change(&transaction, &before).await?;
        commit_change(transaction, now, (&[ChangeSubject::Workspace(id)], LimitChange::None), audit, &rows).await?;
        Ok(WorkspaceDeletion::Deleted)
    }

    async fn credit(&self, id: WorkspaceId) -> Result<Option<Credit>, StoreError> {
        let reader = self.database.readers()?;
        match workspace_by_id(id).one(reader).await.map_err(store_error)? {
            Some(row) => Ok(Some(read_credit(&row, total_spend(reader, &row.id).await?)?)),
            None => Ok(None),
        }
    }

    async fn change_credit<'a>(
        &self,
        id: WorkspaceId,
        edit: &'a CreditEdit<'a>,
    ) -> Result<Option<Credit>, WorkspaceError> {
        let transaction = self.database.begin().await?;
        let query = workspace_by_id(id).lock_exclusive();
        let Some(row) = query.one(&transaction).await.map_err(store_error)? else { return Ok(None) };
        let spent = total_spend(&transaction, &row.id).await?;
        let before = read_credit(&row, spent)?;
        let (granted, audit) = edit(&before)?;
        if granted == before.granted {
            return Ok(Some(before));
        }
        let now = self.database.now();
        let mut change = Entity::update_many().col_expr(Column::CreditPico, Expr::value(granted.map(Usd::pico)));
        if before.granted.is_none() {
            change = change
                .col_expr(Column::CreditBasePico, Expr::value(spent))
                .col_expr(Column::CreditBeganAt, Expr::value(millis(now)))
                .col_expr(Column::CreditLatePico, Expr::value(0_i64));
        }
        change.filter(Column::Id.eq(row.id.as_str())).exec(&transaction).await.map_err(store_error)?;
        let after = workspace_by_id(id).one(&transaction).await.map_err(store_error)?;
        let after = read_credit(&after.ok_or_else(|| corrupt("workspaces.id", id))?, spent)?;
        let mut rows = RowChanges::default();
        rows.record_change(&transaction, &row).await?;
        // Processes return allowances of a limit that was lowered.
        let subjects = [ChangeSubject::Workspace(id)];
        let is_raised = before.granted.is_some_and(|before| granted > Some(before));
        let changes = if is_raised { NO_CHANGE } else { (subjects.as_slice(), LimitChange::Changed) };
        commit_change(transaction, now, changes, &audit, &rows).await?;
        Ok(Some(after))
    }
}

impl SeaOrmWorkspaceRepository {
    async fn read(&self, query: Select<Entity>) -> Result<Vec<Workspace>, StoreError> {
        let reader = self.database.readers()?;
        let rows = query.all(reader).await.map_err(store_error)?;
        let mut workspaces = Vec::with_capacity(rows.len());
        for row in rows {
            workspaces.push(to_workspace(reader, row).await?);
        }
        Ok(workspaces)
    }
}

/// Counts the contents of a workspace.
async fn contents(connection: &impl ConnectionTrait, id: &str) -> Result<WorkspaceContents, StoreError> {
    let keys = entities::api_keys::Entity::find()
        .filter(entities::api_keys::Column::WorkspaceId.eq(id))
        .filter(entities::api_keys::Column::Deleted.eq(false));
    let documents = entities::documents::Entity::find().filter(entities::documents::Column::WorkspaceId.eq(id));
    let guardrails = entities::guardrails::Entity::find().filter(entities::guardrails::Column::WorkspaceId.eq(id));
    let destinations =
        entities::destinations::Entity::find().filter(entities::destinations::Column::WorkspaceId.eq(id));
    let presets = entities::presets::Entity::find().filter(entities::presets::Column::WorkspaceId.eq(id));
    Ok(WorkspaceContents {
        keys: keys.count(connection).await.map_err(store_error)?,
        documents: documents.count(connection).await.map_err(store_error)?,
        guardrails: guardrails.count(connection).await.map_err(store_error)?,
        destinations: destinations.count(connection).await.map_err(store_error)?,
        presets: presets.count(connection).await.map_err(store_error)?,
        container_files: 0,
    })
}

/// Returns the total spend of a workspace from its counter.
async fn total_spend(connection: &impl ConnectionTrait, id: &str) -> Result<i64, StoreError> {
    let key = ("workspace".to_owned(), id.to_owned(), "total".to_owned(), 0);
    let counter = spend_counters::Entity::find_by_id(key).one(connection).await.map_err(store_error)?;
    Ok(counter.map_or(0, |counter| counter.spent_pico))
}

/// Returns the credit of a workspace with this total spend.
fn read_credit(row: &Model, spent: i64) -> Result<Credit, StoreError> {
    let Some(granted) = row.credit_pico else { return Ok(Credit { granted: None, spent: Usd::from_pico(spent) }) };
    let of_credit = credit_base(row.credit_base_pico, row.credit_late_pico).and_then(|base| spent.checked_sub(base));
    // The balance is an amount, too.
    let of_credit = of_credit.filter(|spent| granted.checked_sub(*spent).is_some());
    let spent = of_credit.ok_or_else(|| corrupt("workspaces.credit_pico", &row.id))?;
    Ok(Credit { granted: Some(Usd::from_pico(granted)), spent: Usd::from_pico(spent) })
}

/// Selects the workspaces within a scope, oldest first.
fn oldest_first(within: &ManagementScope) -> Select<Entity> {
    let query = Entity::find().filter(Column::DeletedAt.is_null()).filter(is_within(Column::Id, within));
    query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id)
}

/// Returns the slug if no workspace has it, else the first free one of those numbered from 2 on.
async fn free_slug(connection: &impl ConnectionTrait, slug: &WorkspaceSlug) -> Result<WorkspaceSlug, StoreError> {
    let numbered = (2..).map(|number| slug.numbered(number));
    for candidate in std::iter::once(slug.clone()).chain(numbered) {
        let same = Entity::find().filter(Column::Slug.eq(candidate.as_str())).filter(Column::DeletedAt.is_null());
        if same.one(connection).await.map_err(store_error)?.is_none() {
            return Ok(candidate);
        }
    }
    Err(corrupt("workspaces.slug", slug.as_str()))
}

/// Sets the settings and budgets of a workspace.
fn set_settings(after: &Workspace) -> UpdateMany<Entity> {
    let number = |rate: Option<u32>| Expr::value(rate.map(i64::from));
    let usd = |budget: Option<Usd>| Expr::value(budget.map(Usd::pico));
    Entity::update_many()
        .col_expr(Column::Name, Expr::value(after.name.as_str()))
        .col_expr(Column::Slug, Expr::value(after.slug.as_str()))
        .col_expr(Column::Description, Expr::value(after.description.clone()))
        .col_expr(Column::OwnerId, Expr::value(after.owner_id.clone()))
        .col_expr(Column::Suspended, Expr::value(after.suspended))
        .col_expr(Column::BudgetDailyPico, usd(after.budgets.daily))
        .col_expr(Column::BudgetWeeklyPico, usd(after.budgets.weekly))
        .col_expr(Column::BudgetMonthlyPico, usd(after.budgets.monthly))
        .col_expr(Column::BudgetLifetimePico, usd(after.budgets.lifetime))
        .col_expr(Column::RequestsPerMinute, number(after.rates.requests_per_minute))
        .col_expr(Column::TokensPerMinute, number(after.rates.tokens_per_minute))
        .col_expr(Column::DefaultGuardrailId, Expr::value(after.default_guardrail_id.map(|id| id.to_string())))
        .col_expr(Column::UpdatedAt, Expr::value(after.updated_at.map(millis)))
}

async fn insert(
    transaction: &impl ConnectionTrait,
    workspace: &Workspace,
    is_default: bool,
    rows: &mut RowChanges,
) -> Result<(), StoreError> {
    let row = Model { is_default, ..to_row(workspace)? }.sealed();
    rows.record_row(None, Some(&row));
    Entity::insert(row.into_active_model()).exec_without_returning(transaction).await.map_err(store_error)?;
    Ok(())
}

async fn find_default(connection: &impl ConnectionTrait) -> Result<Option<Model>, StoreError> {
    Entity::find().filter(Column::IsDefault.eq(true)).one(connection).await.map_err(store_error)
}

fn to_row(workspace: &Workspace) -> Result<Model, StoreError> {
    Ok(Model {
        id: workspace.id.to_string(),
        name: workspace.name.as_str().to_owned(),
        slug: workspace.slug.as_str().to_owned(),
        description: workspace.description.clone(),
        owner_id: workspace.owner_id.clone(),
        is_default: workspace.is_default,
        suspended: workspace.suspended,
        credit_pico: workspace.credit.map(Usd::pico),
        storage_used_bytes: signed(workspace.storage_used_bytes, "workspaces.storage_used_bytes", workspace.id)?,
        created_at: millis(workspace.created_at),
        updated_at: workspace.updated_at.map(millis),
        credit_base_pico: None,
        budget_daily_pico: workspace.budgets.daily.map(Usd::pico),
        budget_weekly_pico: workspace.budgets.weekly.map(Usd::pico),
        budget_monthly_pico: workspace.budgets.monthly.map(Usd::pico),
        budget_lifetime_pico: workspace.budgets.lifetime.map(Usd::pico),
        requests_per_minute: workspace.rates.requests_per_minute.map(i64::from),
        tokens_per_minute: workspace.rates.tokens_per_minute.map(i64::from),
        default_guardrail_id: workspace.default_guardrail_id.map(|id| id.to_string()),
        document_count: 0,
        credit_began_at: workspace.credit.map(|_| millis(workspace.created_at)),
        credit_late_pico: 0,
        deleted_at: None,
        audit_hash: None,
    })
}

async fn to_workspace(connection: &impl ConnectionTrait, row: Model) -> Result<Workspace, StoreError> {
    let id: WorkspaceId = parse(&row.id, "workspaces.id", &row.id)?;
    let credit = match row.credit_pico {
        Some(_) => read_credit(&row, total_spend(connection, &row.id).await?)?.remaining(),
        None => None,
    };
    let guardrail = row.default_guardrail_id.as_ref();
    Ok(Workspace {
        id,
        name: WorkspaceName::try_new(&row.name).map_err(|_| corrupt("workspaces.name", id))?,
        slug: WorkspaceSlug::try_new(&row.slug).map_err(|_| corrupt("workspaces.slug", id))?,
        description: row.description,
        owner_id: row.owner_id,
        is_default: row.is_default,
        suspended: row.suspended,
        credit,
        budgets: to_budgets([
            row.budget_daily_pico,
            row.budget_weekly_pico,
            row.budget_monthly_pico,
            row.budget_lifetime_pico,
        ]),
        rates: rates(row.requests_per_minute, row.tokens_per_minute, "workspaces.requests_per_minute", id)?,
        default_guardrail_id: guardrail.map(|found| parse(found, "workspaces.default_guardrail_id", id)).transpose()?,
        storage_used_bytes: unsigned(row.storage_used_bytes, "workspaces.storage_used_bytes", id)?,
        created_at: moment(row.created_at, "workspaces.created_at", id)?,
        updated_at: row.updated_at.map(|at| moment(at, "workspaces.updated_at", id)).transpose()?,
    })
}
