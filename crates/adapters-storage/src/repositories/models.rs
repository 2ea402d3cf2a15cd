//! The catalogue's rows.

use async_trait::async_trait;
use domain::audit::AuditDraft;
use domain::change_feed::ChangeSubject;
use domain::error::StoreError;
use domain::model::{CatalogueChange, Model as CatalogueModel, ModelRepository};
use sea_orm::sea_query::OnConflict;
use sea_orm::{ActiveValue, ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::rows::commit_unmanaged_change;
use crate::change_feed::counters;
use crate::entities::models::{ActiveModel, Column, Entity};
use crate::errors::{corrupt, store_error};
use crate::statements::{chunks, chunks_of};

repository! {
    /// Stores the catalogue in the database: one row per model, as JSON in the catalogue's stored format.
    SeaOrmModelRepository
}

/// Rows per statement; a power of two.
const ROWS: usize = 64;

#[async_trait]
impl ModelRepository for SeaOrmModelRepository {
    async fn list(&self) -> Result<Vec<CatalogueModel>, StoreError> {
        let query = Entity::find().order_by_asc(Column::Position).order_by_asc(Column::Id);
        let rows = query.all(self.database.readers()?).await.map_err(store_error)?;
        let read = |row: &crate::entities::models::Model| {
            let model = wires::catalogue::read_row(&row.content).map_err(|_| corrupt("models.content", &row.id))?;
            if model.id.as_str() == row.id { Ok(model) } else { Err(corrupt("models.id", &row.id)) }
        };
        rows.iter().map(read).collect()
    }

    async fn version(&self) -> Result<u64, StoreError> {
        Ok(counters(self.database.readers()?).await?.catalogue)
    }

    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError> {
        let transaction = self.database.begin().await?;
        if counters(&transaction).await?.catalogue != expected_version {
            return Ok(false);
        }
        let removed: Vec<&str> = change.remove.iter().map(domain::model::ModelId::as_str).collect();
        for piece in chunks(&removed) {
            let gone = Column::Id.is_in(piece.iter().copied());
            Entity::delete_many().filter(gone).exec(&transaction).await.map_err(store_error)?;
        }
        upsert(&transaction, &change.upsert).await?;
        commit_unmanaged_change(transaction, self.database.now(), &[ChangeSubject::Catalogue], audit).await?;
        Ok(true)
    }
}

/// Inserts or updates rows. New rows go to the end; existing ones keep their position.
async fn upsert(transaction: &impl ConnectionTrait, models: &[CatalogueModel]) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(models.len());
    for (position, model) in (next_position(transaction).await?..).zip(models) {
        rows.push(ActiveModel {
            id: ActiveValue::Set(model.id.as_str().to_owned()),
            position: ActiveValue::Set(position),
            content: ActiveValue::Set(wires::catalogue::write_stored(model)),
        });
    }
    for piece in chunks_of(&rows, ROWS) {
        Entity::insert_many(piece.iter().cloned())
            .on_conflict(OnConflict::column(Column::Id).update_column(Column::Content).to_owned())
            .exec_without_returning(transaction)
            .await
            .map_err(store_error)?;
    }
    Ok(())
}

async fn next_position(connection: &impl ConnectionTrait) -> Result<i64, StoreError> {
    let last: Option<Option<i64>> = Entity::find()
        .select_only()
        .column_as(Column::Position.max(), "last")
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    Ok(last.flatten().map_or(0, |last| last + 1))
}
