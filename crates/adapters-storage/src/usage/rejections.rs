//! Counts of rejected requests.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::error::StoreError;
use domain::ids::WorkspaceId;
use domain::usage::{
    Rejection, RejectionCount, RejectionFilter, RejectionReason, RejectionStatus, RejectionStore, RejectionSum, hour_of,
};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use sea_orm::{ActiveValue, ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::ids;
use crate::convert::{key_column, key_id, millis, moment, signed, unsigned};
use crate::entities::rejections::{ActiveModel, Column, Entity, Model};
use crate::errors::{corrupt, store_error};
use crate::statements::chunks;

/// The table, for errors.
const TABLE: &str = "rejections";

/// The columns of the primary key.
const KEY: [Column; 4] = [Column::ApiKey, Column::Hour, Column::Status, Column::Reason];

repository! {
    /// Stores counts of rejected requests in the database.
    SeaOrmRejectionStore
}

#[async_trait]
impl RejectionStore for SeaOrmRejectionStore {
    async fn add(&self, counts: &[RejectionCount]) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        let rows = counts.iter().map(to_row).collect::<Result<Vec<_>, _>>()?;
        let transaction = self.database.begin().await?;
        for piece in chunks(&rows) {
            let sum = Expr::col((Entity, Column::Requests)).add(Expr::cust("excluded.requests"));
            Entity::insert_many(piece.iter().cloned())
                .on_conflict(OnConflict::columns(KEY).value(Column::Requests, sum).to_owned())
                .exec_without_returning(&transaction)
                .await
                .map_err(store_error)?;
        }
        transaction.commit().await
    }

    async fn list(&self, filter: &RejectionFilter, limit: u64) -> Result<Vec<RejectionCount>, StoreError> {
        let rows = Entity::find()
            .filter(wanted(filter))
            .order_by_desc(Column::Hour)
            .order_by_desc(Column::Requests)
            .order_by_asc(Column::ApiKey)
            .order_by_asc(Column::Status)
            .order_by_asc(Column::Reason)
            .limit(Ord::min(limit, u64::from(u32::MAX)))
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        rows.iter().map(to_count).collect()
    }

    async fn sum(&self, filter: &RejectionFilter) -> Result<Vec<RejectionSum>, StoreError> {
        let rows: Vec<(i32, String, i64, i64)> = Entity::find()
            .select_only()
            .column(Column::Status)
            .column(Column::Reason)
            // PostgreSQL sums 64-bit integers to a decimal.
            .column_as(Column::Requests.sum().cast_as("bigint"), "requests")
            .column_as(Column::Hour.max(), "hour")
            .filter(wanted(filter))
            .group_by(Column::Status)
            .group_by(Column::Reason)
            .into_tuple()
            .all(self.database.report_readers()?)
            .await
            .map_err(store_error)?;
        let mut sums = rows.into_iter().map(to_sum).collect::<Result<Vec<_>, _>>()?;
        sums.sort_by_key(|sum| (std::cmp::Reverse(sum.count), sum.status, sum.reason));
        Ok(sums)
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let ended = before.checked_sub_signed(TimeDelta::hours(1)).unwrap_or(DateTime::<Utc>::MIN_UTC);
        let old = Query::select()
            .columns(KEY)
            .from(Entity)
            .and_where(Column::Hour.lte(millis(ended)))
            .limit(Ord::min(limit, u64::from(u32::MAX)))
            .to_owned();
        let pruned = Entity::delete_many()
            .filter(Expr::tuple(KEY.map(Expr::col)).in_subquery(old))
            .exec(self.database.writer()?)
            .await
            .map_err(store_error)?;
        Ok(pruned.rows_affected)
    }
}

fn wanted(filter: &RejectionFilter) -> Condition {
    let workspace = |ids: &Vec<WorkspaceId>| Column::WorkspaceId.is_in(ids.iter().map(|id| ids::workspace_column(*id)));
    Condition::all()
        .add_option(filter.workspaces.as_ref().map(workspace))
        .add_option(filter.api_key.map(|key| Column::ApiKey.eq(key_column(key))))
        .add_option(filter.since.map(|since| Column::Hour.gte(millis(hour_of(since)))))
        .add_option(filter.until.map(|until| Column::Hour.lt(millis(until))))
}

fn to_row(count: &RejectionCount) -> Result<ActiveModel, StoreError> {
    let Rejection { api_key, workspace_id, status, reason } = count.rejection;
    Ok(ActiveModel {
        api_key: ActiveValue::Set(key_column(api_key)),
        hour: ActiveValue::Set(millis(count.hour)),
        status: ActiveValue::Set(status.code().into()),
        reason: ActiveValue::Set(reason.as_str().to_owned()),
        workspace_id: ActiveValue::Set(workspace_id.map(ids::workspace_column)),
        requests: ActiveValue::Set(signed(count.count, "rejections.requests", api_key)?),
    })
}

fn to_count(row: &Model) -> Result<RejectionCount, StoreError> {
    let api_key = key_id(&row.api_key, "rejections.api_key", TABLE)?;
    let workspace_id = match row.workspace_id.as_deref() {
        Some(column) => Some(ids::workspace_id(column).ok_or_else(|| corrupt("rejections.workspace_id", api_key))?),
        None => None,
    };
    Ok(RejectionCount {
        rejection: Rejection {
            api_key,
            workspace_id,
            status: status_of(row.status)?,
            reason: RejectionReason::from_name(&row.reason),
        },
        hour: moment(row.hour, "rejections.hour", api_key)?,
        count: unsigned(row.requests, "rejections.requests", api_key)?,
    })
}

fn to_sum((status, reason, requests, hour): (i32, String, i64, i64)) -> Result<RejectionSum, StoreError> {
    Ok(RejectionSum {
        status: status_of(status)?,
        reason: RejectionReason::from_name(&reason),
        count: unsigned(requests, "rejections.requests", TABLE)?,
        last_hour: moment(hour, "rejections.hour", TABLE)?,
    })
}

fn status_of(code: i32) -> Result<RejectionStatus, StoreError> {
    let status = u16::try_from(code).ok().and_then(RejectionStatus::from_code);
    status.ok_or_else(|| corrupt("rejections.status", TABLE))
}
