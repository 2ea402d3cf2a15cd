//! The implementation of the port.

use async_trait::async_trait;
use domain::budget::ResetInterval;
use domain::error::StoreError;
use domain::ids::{DecisionId, WorkspaceId};
use domain::usage::{RecordTime, UsageFilter, UsageRecord, UsageRepository};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::ids;
use super::row::to_record;
use crate::convert::{key_column, millis};
use crate::database::Database;
use crate::entities::record_bytes;
use crate::entities::usage_records::{Column, Entity};
use crate::errors::store_error;

/// Reads usage records from the database; [`crate::SeaOrmBudgetStore`] writes them.
#[derive(Clone)]
pub struct SeaOrmUsageRepository {
    database: Database,
}

impl SeaOrmUsageRepository {
    /// Creates the repository over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

#[async_trait]
impl UsageRepository for SeaOrmUsageRepository {
    async fn find(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        let query = Entity::find_by_id(ids::decision_column(id));
        let found = query.one(self.database.readers()?).await.map_err(store_error)?;
        found.map(to_record).transpose()
    }

    async fn list(&self, filter: &UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let rows = Entity::find()
            .filter(wanted(filter))
            .order_by_desc(time_column(filter))
            .order_by_desc(Column::Id)
            // The largest number that the database supports.
            .limit(limit.min(u64::from(u32::MAX)))
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_record).collect()
    }

    async fn recorded_bytes(&self, workspace_id: WorkspaceId) -> Result<u64, StoreError> {
        let found = record_bytes::Entity::find_by_id(workspace_id.to_string()).one(self.database.readers()?).await;
        let today = millis(ResetInterval::Daily.start_of(self.database.now()));
        let of_today = found.map_err(store_error)?.filter(|row| row.day >= today);
        Ok(of_today.map_or(0, |row| u64::try_from(row.bytes).unwrap_or_default()))
    }
}

fn time_column(filter: &UsageFilter) -> Column {
    match filter.time {
        RecordTime::Created => Column::CreatedAt,
        RecordTime::Charged => Column::ChargedAt,
    }
}

fn wanted(filter: &UsageFilter) -> Condition {
    let time = time_column(filter);
    let mut wanted = Condition::all();
    if let Some(workspace_id) = filter.workspace_id {
        wanted = wanted.add(Column::WorkspaceId.eq(ids::workspace_column(workspace_id)));
    }
    if let Some(key) = filter.api_key {
        wanted = wanted.add(Column::ApiKey.eq(key_column(key)));
    }
    if let Some(provider) = &filter.provider {
        wanted = wanted.add(Column::Provider.eq(provider.as_str()));
    }
    if let Some(outcome) = filter.outcome {
        wanted = wanted.add(Column::Outcome.eq(outcome.as_str()));
    }
    if let Some(since) = filter.since {
        wanted = wanted.add(time.gte(millis(since)));
    }
    if let Some(until) = filter.until {
        wanted = wanted.add(time.lt(millis(until)));
    }
    if let Some((at, id)) = &filter.after {
        let at = millis(*at);
        let same_moment = Condition::all().add(time.eq(at)).add(Column::Id.lt(ids::decision_column(id)));
        // This condition lets the database use the index; the alternatives below hide their common part.
        wanted = wanted.add(time.lte(at));
        wanted = wanted.add(Condition::any().add(time.lt(at)).add(same_moment));
    }
    wanted
}
