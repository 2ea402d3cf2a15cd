//! Usage records: their rows and queries. [`crate::budget`] writes them.

pub(crate) mod ids;
mod months;
mod rejections;
mod row;
mod sums;

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::budget::ResetInterval;
use domain::error::StoreError;
use domain::ids::{ApiKeyId, DecisionId, WorkspaceId};
use domain::usage::{UsageFilter, UsageRecord, UsageRepository, UsageSum, UsageSumQuery};
use sea_orm::sea_query::{Expr, ExprTrait, Order, Query, SimpleExpr};
use sea_orm::{ColumnTrait, Condition, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use self::row::to_record;
use crate::convert::{key_column, key_id, millis, moment};
use crate::entities::usage_records::{Column, Entity};
use crate::entities::{api_keys, record_bytes};
use crate::errors::store_error;
use crate::statements::{chunks, column};

pub use months::{ChangedMonths, UsageMonths};
pub use rejections::SeaOrmRejectionStore;
pub(crate) use row::{COST_COLUMNS, RECORD_COLUMNS, StoredCosts, storable, write_record};

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
        // The largest number that the database supports.
        let limit = Ord::min(limit, u64::from(u32::MAX));
        let readers = self.database.report_readers()?;
        let query = match filter.workspaces.as_deref() {
            Some(workspaces) if workspaces.len() != 1 => {
                Entity::find().filter(Column::Id.is_in(self.newest_ids(filter, workspaces, limit).await?))
            }
            _ => Entity::find().filter(wanted(filter)),
        };
        let rows = query.order_by_desc(Column::ChargedAt).order_by_desc(Column::Id).limit(limit).all(readers).await;
        rows.map_err(store_error)?.into_iter().map(to_record).collect()
    }

    async fn count_read(&self, filter: &UsageFilter, limit: u64) -> Result<u64, StoreError> {
        let readers = self.database.report_readers()?;
        let limit = Ord::min(limit, u64::from(u32::MAX));
        let records = Entity::find().select_only().column(Column::ChargedAt).filter(read(filter)).limit(limit);
        let count = Query::select().expr(Expr::cust("COUNT(*)")).from_subquery(records.into_query(), "records").take();
        let row = readers.query_one(&count).await.map_err(store_error)?;
        let count: i64 = row.as_ref().map_or(Ok(0), |row| column(row, 0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    async fn sum(&self, query: &UsageSumQuery, limit: u64) -> Result<Vec<UsageSum>, StoreError> {
        sums::read_sums(self.database.report_readers()?, query, limit).await
    }

    /// Each key's newest record is one step in the index of keys and times. A range of one key and the order by it leave
    /// no other index: for a key without records PostgreSQL would read those of all others in the order of time.
    async fn last_use(&self, keys: &[ApiKeyId]) -> Result<HashMap<ApiKeyId, DateTime<Utc>>, StoreError> {
        let mut last = HashMap::new();
        let keys: Vec<Vec<u8>> = keys.iter().map(|id| key_column(*id)).collect();
        for piece in chunks(&keys) {
            let own = || Expr::col((api_keys::Entity, api_keys::Column::Id));
            let newest = Query::select()
                .column(Column::CreatedAt)
                .from(Entity)
                .and_where(Expr::col((Entity, Column::ApiKey)).between(own(), own()))
                .order_by(Column::ApiKey, Order::Desc)
                .order_by(Column::ChargedAt, Order::Desc)
                .limit(1)
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

impl SeaOrmUsageRepository {
    /// Returns the ids of the newest records of several workspaces, those of each by its index: a database would sort
    /// all their records.
    async fn newest_ids(
        &self,
        filter: &UsageFilter,
        workspaces: &[WorkspaceId],
        limit: u64,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut newest: Vec<(i64, Vec<u8>)> = Vec::new();
        for workspace_id in workspaces {
            let of_one = UsageFilter { workspaces: Some(vec![*workspace_id]), ..filter.clone() };
            let found = Entity::find()
                .select_only()
                .columns([Column::ChargedAt, Column::Id])
                .filter(wanted(&of_one))
                .order_by_desc(Column::ChargedAt)
                .order_by_desc(Column::Id)
                .limit(limit)
                .into_tuple::<(i64, Vec<u8>)>()
                .all(self.database.report_readers()?)
                .await;
            newest.extend(found.map_err(store_error)?);
            newest.sort_unstable_by(|a, b| b.cmp(a));
            newest.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        Ok(newest.into_iter().map(|(_, id)| id).collect())
    }
}

fn wanted(filter: &UsageFilter) -> Condition {
    read(filter)
        .add_option(filter.model.as_deref().map(|model| Column::Model.eq(model)))
        .add_option(filter.provider.as_deref().map(|provider| Column::Provider.eq(provider)))
        .add_option(filter.user.as_deref().map(|user| Column::User.eq(user)))
        .add_option(filter.session_id.as_deref().map(|session| Column::SessionId.eq(session)))
        .add_option(filter.outcome.map(|outcome| Column::Outcome.eq(outcome.as_str())))
}

/// Returns the conditions that indexes cover.
fn read(filter: &UsageFilter) -> Condition {
    let workspace = |ids: &Vec<WorkspaceId>| Column::WorkspaceId.is_in(ids.iter().map(|id| ids::workspace_column(*id)));
    let wanted = Condition::all()
        .add_option(filter.workspaces.as_ref().map(workspace))
        .add_option(filter.api_key.map(|key| Column::ApiKey.eq(key_column(key))))
        .add_option(filter.since.map(|since| Column::ChargedAt.gte(millis(since))))
        .add_option(filter.until.map(|until| Column::ChargedAt.lt(millis(until))));
    let Some((at, id)) = &filter.after else { return wanted };
    let at = millis(*at);
    let same_moment = Condition::all().add(Column::ChargedAt.eq(at)).add(Column::Id.lt(ids::decision_column(id)));
    // The first condition lets the database use the index; the alternatives hide their common part.
    wanted.add(Column::ChargedAt.lte(at)).add(Condition::any().add(Column::ChargedAt.lt(at)).add(same_moment))
}
