//! Presets and their versions.

use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::authority::ManagementScope;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::ids::{PresetId, WorkspaceId};
use domain::json::Json;
use domain::preset::{
    DesignatedPreset, Preset, PresetConfig, PresetRepository, PresetSave, PresetSlug, PresetStatus, PresetVersion,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait,
};

use super::rows::{commit_unmanaged_change, is_within, workspace_exists};
use crate::convert::{millis, moment, parse};
use crate::entities::preset_versions;
use crate::entities::presets::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

repository! {
    /// Stores presets in the database.
    SeaOrmPresetRepository
}

#[async_trait]
impl PresetRepository for SeaOrmPresetRepository {
    async fn save<'a>(
        &self,
        before: Option<&'a Preset>,
        after: &Preset,
        added: Option<&'a PresetVersion>,
        audit: &AuditDraft,
    ) -> Result<PresetSave, StoreError> {
        let transaction = self.database.begin().await?;
        let stored = find(&transaction, after.workspace_id, &after.slug).await?;
        if stored != before.map(to_row) || !workspace_exists(&transaction, after.workspace_id).await? {
            return Ok(PresetSave::Conflict);
        }
        if before.is_none() {
            let own = Entity::find().filter(Column::WorkspaceId.eq(after.workspace_id.to_string()));
            if own.count(&transaction).await.map_err(store_error)? >= Preset::MAX_IN_WORKSPACE {
                return Ok(PresetSave::TooMany);
            }
        }
        let row = to_row(after).into_active_model();
        if before.is_some() {
            let update = Entity::update_many().set(row.reset_all()).filter(Column::Id.eq(after.id.to_string()));
            update.exec(&transaction).await.map_err(store_error)?;
        } else {
            Entity::insert(row).exec_without_returning(&transaction).await.map_err(store_error)?;
        }
        if let Some(version) = added {
            let row = preset_versions::Model {
                preset_id: after.id.to_string(),
                version: version.number.into(),
                config: version.config.to_json().text().to_owned(),
                created_by: version.created_by.clone(),
                created_at: millis(version.created_at),
            };
            let insert = preset_versions::Entity::insert(row.into_active_model());
            insert.exec_without_returning(&transaction).await.map_err(store_error)?;
        }
        commit_unmanaged_change(transaction, self.database.now(), &[ChangeSubject::Preset(after.id)], audit).await?;
        Ok(PresetSave::Saved)
    }

    async fn find(&self, workspace_id: WorkspaceId, slug: &PresetSlug) -> Result<Option<DesignatedPreset>, StoreError> {
        let snapshot = self.database.snapshot().await?;
        let Some(row) = find(&snapshot, workspace_id, slug).await? else { return Ok(None) };
        let key = (row.id.clone(), row.designated_version);
        let version = preset_versions::Entity::find_by_id(key).one(&snapshot).await.map_err(store_error)?;
        let version = version.ok_or_else(|| corrupt("presets.designated_version", &row.id))?;
        Ok(Some(DesignatedPreset { preset: to_preset(row)?, version: to_version(version)? }))
    }

    async fn page(&self, within: &ManagementScope, offset: u64, limit: u64) -> Result<(Vec<Preset>, u64), StoreError> {
        let snapshot = self.database.snapshot().await?;
        let query = Entity::find().filter(is_within(Column::WorkspaceId, within));
        let total = query.clone().count(&snapshot).await.map_err(store_error)?;
        let query = query.order_by_desc(Column::UpdatedAt).order_by_desc(Column::Id).offset(offset).limit(limit);
        let rows = query.all(&snapshot).await.map_err(store_error)?;
        Ok((rows.into_iter().map(to_preset).collect::<Result<_, _>>()?, total))
    }

    async fn versions(&self, id: PresetId, first: u32, limit: u64) -> Result<Vec<PresetVersion>, StoreError> {
        let rows = preset_versions::Entity::find()
            .filter(preset_versions::Column::PresetId.eq(id.to_string()))
            .filter(preset_versions::Column::Version.gte(i64::from(first)))
            .order_by_asc(preset_versions::Column::Version)
            .limit(limit)
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_version).collect()
    }
}

async fn find(
    connection: &impl ConnectionTrait,
    workspace_id: WorkspaceId,
    slug: &PresetSlug,
) -> Result<Option<Model>, StoreError> {
    let of_workspace = Entity::find().filter(Column::WorkspaceId.eq(workspace_id.to_string()));
    let named = of_workspace.filter(Column::Slug.eq(slug.as_str()));
    named.one(connection).await.map_err(store_error)
}

/// Deletes the presets of a workspace.
pub(super) async fn delete_of_workspace(
    transaction: &impl ConnectionTrait,
    workspace_id: &str,
) -> Result<(), StoreError> {
    let own = Entity::find().select_only().column(Column::Id).filter(Column::WorkspaceId.eq(workspace_id));
    let versions =
        preset_versions::Entity::delete_many().filter(preset_versions::Column::PresetId.in_subquery(own.into_query()));
    versions.exec(transaction).await.map_err(store_error)?;
    let presets = Entity::delete_many().filter(Column::WorkspaceId.eq(workspace_id));
    presets.exec(transaction).await.map(drop).map_err(store_error)
}

fn to_row(preset: &Preset) -> Model {
    Model {
        id: preset.id.to_string(),
        workspace_id: preset.workspace_id.to_string(),
        slug: preset.slug.as_str().to_owned(),
        name: preset.name.clone(),
        status: preset.status.as_str().to_owned(),
        status_updated_at: preset.status_updated_at.map(millis),
        designated_version: preset.designated_version.into(),
        newest_version: preset.newest_version.into(),
        created_by: preset.created_by.clone(),
        created_at: millis(preset.created_at),
        updated_at: millis(preset.updated_at),
    }
}

fn to_preset(row: Model) -> Result<Preset, StoreError> {
    let id: PresetId = parse(&row.id, "presets.id", &row.id)?;
    let version = |number: i64, column| u32::try_from(number).map_err(|_| corrupt(column, id));
    let status_updated_at = row.status_updated_at.map(|at| moment(at, "presets.status_updated_at", id));
    Ok(Preset {
        id,
        workspace_id: parse(&row.workspace_id, "presets.workspace_id", id)?,
        slug: PresetSlug::try_new(&row.slug).map_err(|_| corrupt("presets.slug", id))?,
        name: row.name,
        status: PresetStatus::from_name(&row.status).ok_or_else(|| corrupt("presets.status", id))?,
        status_updated_at: status_updated_at.transpose()?,
        designated_version: version(row.designated_version, "presets.designated_version")?,
        newest_version: version(row.newest_version, "presets.newest_version")?,
        created_by: row.created_by,
        created_at: moment(row.created_at, "presets.created_at", id)?,
        updated_at: moment(row.updated_at, "presets.updated_at", id)?,
    })
}

fn to_version(row: preset_versions::Model) -> Result<PresetVersion, StoreError> {
    let invalid = |column| corrupt(column, format!("{}.{}", row.preset_id, row.version));
    let config = Json::parse(&row.config).ok().and_then(|json| PresetConfig::read(&json).ok());
    Ok(PresetVersion {
        number: u32::try_from(row.version).map_err(|_| invalid("preset_versions.version"))?,
        config: config.ok_or_else(|| invalid("preset_versions.config"))?,
        created_at: moment(row.created_at, "preset_versions.created_at", &row.preset_id)?,
        created_by: row.created_by,
    })
}
