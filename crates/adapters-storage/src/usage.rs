//! Usage records: their rows and queries. [`crate::budget`] writes them.

pub(crate) mod ids;
mod months;
mod rejections;
mod row;

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::budget::ResetInterval;
use domain::error::StoreError;
use domain::ids::{ApiKeyId, DecisionId, WorkspaceId};
use domain::usage::{RecordTime, UsageFilter, UsageRecord, UsageRepository};
use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use self::row::to_record;
use crate::convert::{key_column, key_id, millis, moment};
use crate::entities::usage_records::{Column, Entity};
use crate::entities::{api_keys, record_bytes};
use crate::errors::store_error;
use crate::statements::chunks;

pub use months::{ChangedMonths, UsageMonths};
pub use rejections::SeaOrmRejectionStore;
pub(crate) use row::{COST_COLUMNS, RECORD_COLUMNS, StoredCosts, write_record};

repository! {
    /// Reads usage records from the database; [`crate::SeaOrmBudgetStore`] writes them.
    SeaOrmUsageRepository
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
            .limit(Ord::min(limit, u64::from(u32::MAX)))
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        rows.into_iter().map(to_record).collect()
    }

    /// Each key's newest record is one step in the index of keys and times.
    async fn last_use(&self, keys: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError> {
        let mut last = HashMap::new();
        let keys: Vec<Vec<u8>> = keys.iter().map(|id| key_column(*id)).collect();
        for piece in chunks(&keys) {
            let own = (Entity, Column::ApiKey);
            let newest = Query::select()
                .expr(Column::CreatedAt.max())
                .from(Entity)
                .and_where(ExprTrait::equals(Expr::col(own), (api_keys::Entity, api_keys::Column::Id)))
                .to_owned();
            let rows: Vec<(Vec<u8>, Option<i64>)> = api_keys::Entity::find()
                .select_only()
                .column(api_keys::Column::Id)
                .expr_as(SimpleExpr::SubQuery(None, Box::new(newest.into())), "last_use")
                .filter(api_keys::Column::Id.is_in(piece.iter().cloned()))
                .into_tuple()
                .all(self.database.readers()?)
                .await
                .map_err(store_error)?;
            for (id, at) in rows {
                let id = key_id(&id, "api_keys.id", "a key")?;
                if let Some(at) = at {
                    last.insert(id, moment(at, "usage_records.created_at", id)?);
                }
            }
        }
        Ok(last)
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
    let wanted = Condition::all()
        .add_option(filter.workspace_id.map(|id| Column::WorkspaceId.eq(ids::workspace_column(id))))
        .add_option(filter.api_key.map(|key| Column::ApiKey.eq(key_column(key))))
        .add_option(filter.provider.as_deref().map(|provider| Column::Provider.eq(provider)))
        .add_option(filter.outcome.map(|outcome| Column::Outcome.eq(outcome.as_str())))
        .add_option(filter.since.map(|since| time.gte(millis(since))))
        .add_option(filter.until.map(|until| time.lt(millis(until))));
    let Some((at, id)) = &filter.after else { return wanted };
    let at = millis(*at);
    let same_moment = Condition::all().add(time.eq(at)).add(Column::Id.lt(ids::decision_column(id)));
    // The first condition lets the database use the index; the alternatives hide their common part.
    wanted.add(time.lte(at)).add(Condition::any().add(time.lt(at)).add(same_moment))
}
