//! Destinations of traces.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::{ApiKeyId, DestinationId, WorkspaceId};
use domain::observability::{Destination, DestinationInsert, DestinationKind, DestinationRepository, NamedDestination};
use domain::secret::SecretString;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use serde::{Deserialize, Serialize};

use super::outbox;
use super::rows::{commit_unmanaged_change, is_within, unchanged, workspace_exists};
use crate::convert::{millis, moment, parse};
use crate::encryption::{ColumnCipher, PREFIX, is_encrypted};
use crate::entities::destinations::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

repository! {
    /// Stores destinations in the database.
    SeaOrmDestinationRepository
}

impl SeaOrmDestinationRepository {
    /// Fails if the key does not decrypt a stored destination. A row with another key would stop every server at its
    /// next start.
    async fn check_key(&self, transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
        let encrypted = Entity::find().filter(Column::Config.starts_with(PREFIX)).one(transaction).await;
        if let Some(Model { id, config, .. }) = encrypted.map_err(store_error)? {
            self.database.cipher().decrypt(&row_name(&id), config)?;
        }
        Ok(())
    }

    /// Returns the rows of one workspace, or with `None` of all workspaces; oldest first.
    async fn rows(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Model>, StoreError> {
        let mut query = Entity::find().order_by_asc(Column::CreatedAt).order_by_asc(Column::Id);
        if let Some(id) = workspace_id {
            query = query.filter(Column::WorkspaceId.eq(id.to_string()));
        }
        query.all(self.database.readers()?).await.map_err(store_error)
    }

    /// Returns the numbers of destinations with encrypted and with plain configuration.
    ///
    /// # Errors
    /// The store failed.
    pub async fn encryption_status(&self) -> Result<(u64, u64), StoreError> {
        let rows = Entity::find().all(self.database.readers()?).await.map_err(store_error)?;
        let encrypted = rows.iter().filter(|row| is_encrypted(&row.config)).count() as u64;
        Ok((encrypted, rows.len() as u64 - encrypted))
    }
}

#[async_trait]
impl DestinationRepository for SeaOrmDestinationRepository {
    async fn insert(
        &self,
        destination: &Destination,
        most: u64,
        audit: &AuditDraft,
    ) -> Result<DestinationInsert, StoreError> {
        let row = to_row(destination, self.database.cipher())?;
        let transaction = self.database.begin().await?;
        if !workspace_exists(&transaction, destination.workspace_id).await? {
            return Ok(DestinationInsert::UnknownWorkspace);
        }
        self.check_key(&transaction).await?;
        let alike = Entity::find()
            .filter(Column::WorkspaceId.eq(row.workspace_id.as_str()))
            .filter(Column::Kind.eq(row.kind.as_str()))
            .count(&transaction)
            .await
            .map_err(store_error)?;
        if alike >= most {
            return Ok(DestinationInsert::TooMany);
        }
        Entity::insert(row.into_active_model()).exec_without_returning(&transaction).await.map_err(store_error)?;
        commit_unmanaged_change(transaction, self.database.now(), &[ChangeSubject::Destinations], audit).await?;
        Ok(DestinationInsert::Added)
    }

    async fn update(
        &self,
        destination: &Destination,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let row = to_row(destination, self.database.cipher())?;
        let transaction = self.database.begin().await?;
        let updated = Entity::update_many()
            .col_expr(Column::Name, Expr::value(row.name))
            .col_expr(Column::Config, Expr::value(row.config))
            .col_expr(Column::Enabled, Expr::value(row.enabled))
            .col_expr(Column::UpdatedAt, Expr::value(row.updated_at))
            .filter(Column::Id.eq(row.id))
            .filter(unchanged(Column::UpdatedAt, seen.map(millis)))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if updated.rows_affected == 0 {
            return Ok(false);
        }
        let now = self.database.now();
        outbox::resume(&transaction, destination.id, now).await?;
        commit_unmanaged_change(transaction, now, &[ChangeSubject::Destinations], audit).await?;
        Ok(true)
    }

    async fn resume(&self, id: DestinationId) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        outbox::resume(&transaction, id, self.database.now()).await?;
        transaction.commit().await
    }

    async fn delete(
        &self,
        id: DestinationId,
        seen: Option<DateTime<Utc>>,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        let deleted = Entity::delete_many()
            .filter(Column::Id.eq(id.to_string()))
            .filter(unchanged(Column::UpdatedAt, seen.map(millis)))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        if deleted.rows_affected == 0 {
            return Ok(false);
        }
        outbox::forget(&transaction, id).await?;
        commit_unmanaged_change(transaction, self.database.now(), &[ChangeSubject::Destinations], audit).await?;
        Ok(true)
    }

    async fn find(&self, id: DestinationId) -> Result<Option<Destination>, StoreError> {
        let row = Entity::find_by_id(id.to_string()).one(self.database.readers()?).await.map_err(store_error)?;
        row.map(|row| to_destination(row, self.database.cipher())).transpose()
    }

    async fn page(
        &self,
        within: &ManagementScope,
        offset: u64,
        limit: u64,
    ) -> Result<(Vec<Destination>, u64), StoreError> {
        let transaction = self.database.snapshot().await?;
        let query = Entity::find().filter(is_within(Column::WorkspaceId, within));
        let total = query.clone().count(&transaction).await.map_err(store_error)?;
        let query = query.order_by_asc(Column::CreatedAt).order_by_asc(Column::Id).offset(offset).limit(limit);
        let rows = query.all(&transaction).await.map_err(store_error)?;
        let page = rows.into_iter().map(|row| to_destination(row, self.database.cipher()));
        Ok((page.collect::<Result<_, _>>()?, total))
    }

    async fn names(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<NamedDestination>, StoreError> {
        self.rows(workspace_id).await?.iter().map(to_named).collect()
    }

    async fn list(&self, workspace_id: Option<WorkspaceId>) -> Result<Vec<Destination>, StoreError> {
        let rows = self.rows(workspace_id).await?;
        rows.into_iter().map(|row| to_destination(row, self.database.cipher())).collect()
    }
}

/// The column `config`.
#[derive(Serialize, Deserialize)]
struct Config {
    url: String,
    headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    privacy_mode: bool,
    sampling: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key_ids: Option<Vec<String>>,
}

/// Returns the name of a row, to which its encrypted value is bound.
fn row_name(id: &str) -> String {
    format!("destination {id}")
}

fn to_row(destination: &Destination, cipher: &ColumnCipher) -> Result<Model, StoreError> {
    let header = |(name, value): &(String, SecretString)| (name.clone(), value.expose().to_owned());
    let keys = destination.api_key_ids.as_ref();
    let config = Config {
        url: destination.url.clone(),
        headers: destination.headers.iter().map(header).collect(),
        secret: destination.signing_secret.as_ref().map(|secret| secret.expose().to_owned()),
        privacy_mode: destination.privacy_mode,
        sampling: destination.sampling,
        api_key_ids: keys.map(|ids| ids.iter().map(ToString::to_string).collect()),
    };
    let id = destination.id.to_string();
    let config = serde_json::to_string(&config).map_err(|_| corrupt("destinations.config", &id))?;
    Ok(Model {
        config: cipher.encrypt(&row_name(&id), config)?,
        id,
        workspace_id: destination.workspace_id.to_string(),
        kind: destination.kind.as_str().to_owned(),
        name: destination.name.clone(),
        enabled: destination.enabled,
        created_at: millis(destination.created_at),
        updated_at: destination.updated_at.map(millis),
    })
}

fn to_named(row: &Model) -> Result<NamedDestination, StoreError> {
    let id: DestinationId = parse(&row.id, "destinations.id", &row.id)?;
    Ok(NamedDestination {
        id,
        workspace_id: parse(&row.workspace_id, "destinations.workspace_id", id)?,
        name: row.name.clone(),
        updated_at: row.updated_at.map(|at| moment(at, "destinations.updated_at", id)).transpose()?,
    })
}

fn to_destination(row: Model, cipher: &ColumnCipher) -> Result<Destination, StoreError> {
    let NamedDestination { id, workspace_id, name, updated_at } = to_named(&row)?;
    // The parser's error may contain the input, which is secret.
    let config = cipher.decrypt(&row_name(&row.id), row.config)?;
    let config: Config = serde_json::from_str(&config).map_err(|_| corrupt("destinations.config", id))?;
    let key = |text: &String| parse::<ApiKeyId>(text, "destinations.config", id);
    Ok(Destination {
        id,
        workspace_id,
        name,
        kind: DestinationKind::from_name(&row.kind).ok_or_else(|| corrupt("destinations.kind", id))?,
        url: config.url,
        headers: config.headers.into_iter().map(|(name, value)| (name, SecretString::new(value))).collect(),
        signing_secret: config.secret.map(SecretString::new),
        enabled: row.enabled,
        privacy_mode: config.privacy_mode,
        sampling: config.sampling,
        api_key_ids: config.api_key_ids.map(|all| all.iter().map(key).collect()).transpose()?,
        created_at: moment(row.created_at, "destinations.created_at", id)?,
        updated_at,
    })
}
