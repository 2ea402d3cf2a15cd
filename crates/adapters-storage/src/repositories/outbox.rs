//! Messages to destinations.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::ids::{DestinationId, OutboxId};
use domain::json::Json;
use domain::observability::{DeadLetterRetry, Destination, DueMessage, Outbox, OutboxStatus};
use domain::usage::OutboxMessage;
use sea_orm::sea_query::{Expr, ExprTrait, IntoCondition, OnConflict, Query};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::rows::{commit_unmanaged_change, unchanged};
use crate::convert::{millis, moment, parse};
use crate::entities::outbox::{Column, Entity, Model};
use crate::entities::{destination_pauses, destinations};
use crate::errors::{corrupt, store_error};
use crate::statements::chunks;

/// Waiting for delivery; the state of a message when a charge creates it.
const PENDING: &str = "pending";
/// Given up.
const DEAD: &str = "dead";

repository! {
    /// Stores the outbox in the database.
    SeaOrmOutbox
}

#[async_trait]
impl Outbox for SeaOrmOutbox {
    /// Finds the destinations one by one through the index, so that a long queue of one is not scanned.
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError> {
        let readers = self.database.readers()?;
        if !any(readers, due_at(now)).await? {
            return Ok(Vec::new());
        }
        let paused = destination_pauses::Column::Until.gt(millis(now));
        let paused = destination_pauses::Entity::find().filter(paused).all(readers).await.map_err(store_error)?;
        let mut found = Vec::new();
        let mut after = String::new();
        while let Some(next) = next_destination(readers, &after).await? {
            let id: DestinationId = parse(&next, "outbox.destination_id", &next)?;
            let is_served = !except.contains(&id) && !paused.iter().any(|paused| paused.destination_id == next);
            if is_served && any(readers, due_at(now).add(Column::DestinationId.eq(next.as_str()))).await? {
                found.push(id);
            }
            after = next;
        }
        Ok(found)
    }

    async fn pause(&self, destination: &Destination, until: DateTime<Utc>) -> Result<(), StoreError> {
        let row = destination_pauses::Model { destination_id: destination.id.to_string(), until: millis(until) };
        let transaction = self.database.begin().await?;
        let is_seen = unchanged(destinations::Column::UpdatedAt, destination.updated_at.map(millis));
        if destination.id != Destination::OPERATORS
            && !destination_exists(&transaction, destination.id, is_seen).await?
        {
            return Ok(());
        }
        let stored = destination_pauses::Entity::find_by_id(row.destination_id.as_str()).one(&transaction).await;
        if stored.map_err(store_error)?.is_some_and(|stored| stored.until >= row.until) {
            return Ok(());
        }
        let replace = OnConflict::column(destination_pauses::Column::DestinationId)
            .update_column(destination_pauses::Column::Until)
            .to_owned();
        let insert = destination_pauses::Entity::insert(row.into_active_model()).on_conflict(replace);
        insert.exec_without_returning(&transaction).await.map_err(store_error)?;
        transaction.commit().await
    }

    /// Selects candidates on a reading connection; the one statement that claims them skips those claimed in the
    /// meantime.
    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError> {
        let mut rows = Entity::find()
            .filter(due_at(now).add(Column::DestinationId.eq(destination.to_string())))
            .order_by_asc(Column::NextAt)
            .order_by_asc(Column::Id)
            .limit(Ord::min(most, u64::from(u32::MAX)))
            .all(self.database.readers()?)
            .await
            .map_err(store_error)?;
        let mut size = 0_usize;
        let fits = rows.iter().take_while(|row| {
            size = size.saturating_add(row.payload.len());
            size <= bytes
        });
        let fitting = fits.count().max(1);
        rows.truncate(fitting);
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let until = millis(now).saturating_add(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX));
        let claim = Query::update()
            .table(Entity)
            .value(Column::NextAt, until)
            .cond_where(due_at(now).add(Column::Id.is_in(rows.iter().map(|row| row.id.as_str()))))
            .returning_col(Column::Id)
            .to_owned();
        let claimed = self.database.writer()?.query_all(&claim).await.map_err(store_error)?;
        let claimed = claimed.iter().map(|row| row.try_get::<String>("", "id"));
        let claimed: Vec<String> = claimed.collect::<Result<_, _>>().map_err(store_error)?;
        rows.iter().filter(|row| claimed.contains(&row.id)).map(to_due).collect()
    }

    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError> {
        for piece in chunks(ids) {
            Entity::delete_many()
                .filter(Column::Id.is_in(piece.iter().map(ToString::to_string)))
                .exec(self.database.writer()?)
                .await
                .map_err(store_error)?;
        }
        Ok(())
    }

    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, reason: &str) -> Result<(), StoreError> {
        for piece in chunks(ids) {
            let mut update = Entity::update_many()
                .col_expr(Column::Attempts, Expr::col(Column::Attempts).add(1))
                .col_expr(Column::LastError, Expr::value(reason))
                .filter(Column::Id.is_in(piece.iter().map(ToString::to_string)));
            update = match next {
                Some(next) => update.col_expr(Column::NextAt, Expr::value(millis(next))),
                None => update.col_expr(Column::State, Expr::value(DEAD)),
            };
            update.exec(self.database.writer()?).await.map_err(store_error)?;
        }
        Ok(())
    }

    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError> {
        for piece in chunks(ids) {
            Entity::update_many()
                .col_expr(Column::NextAt, Expr::value(millis(next)))
                .filter(Column::Id.is_in(piece.iter().map(ToString::to_string)))
                .filter(Column::State.eq(PENDING))
                .exec(self.database.writer()?)
                .await
                .map_err(store_error)?;
        }
        Ok(())
    }

    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let transaction = self.database.begin().await?;
        if destination_exists(&transaction, destination, Condition::all()).await? {
            return Ok(0);
        }
        let gone = Entity::delete_many()
            .filter(Column::DestinationId.eq(destination.to_string()))
            .filter(Column::State.eq(PENDING))
            .filter(Column::CreatedAt.lt(millis(before)))
            .exec(&transaction)
            .await
            .map_err(store_error)?;
        transaction.commit().await?;
        Ok(gone.rows_affected)
    }

    async fn status(&self) -> Result<OutboxStatus, StoreError> {
        let readers = self.database.readers()?;
        let count =
            async |state| Entity::find().filter(Column::State.eq(state)).count(readers).await.map_err(store_error);
        let oldest: Option<Option<i64>> = Entity::find()
            .select_only()
            .column_as(Column::CreatedAt.min(), "oldest")
            .filter(Column::State.eq(PENDING))
            .into_tuple()
            .one(readers)
            .await
            .map_err(store_error)?;
        let oldest = oldest.flatten().map(|at| moment(at, "outbox.created_at", "the oldest")).transpose()?;
        Ok(OutboxStatus { pending: count(PENDING).await?, dead: count(DEAD).await?, oldest })
    }

    async fn retry_dead_letters(&self, retry: &DeadLetterRetry, now: DateTime<Utc>) -> Result<Option<u64>, StoreError> {
        let dead = Entity::update_many()
            .col_expr(Column::State, Expr::value(PENDING))
            .col_expr(Column::NextAt, Expr::value(millis(now)))
            .col_expr(Column::Attempts, Expr::value(0))
            .filter(Column::State.eq(DEAD))
            .filter(Column::DestinationId.eq(retry.destination.to_string()));
        let transaction = self.database.begin().await?;
        if let Some(seen) = &retry.seen {
            let is_seen = unchanged(destinations::Column::UpdatedAt, seen.updated_at.map(millis));
            if !destination_exists(&transaction, retry.destination, is_seen).await? {
                return Ok(None);
            }
        }
        let waiting = resume(&transaction, retry.destination, now).await?;
        let retried = waiting + dead.exec(&transaction).await.map_err(store_error)?.rows_affected;
        if retried > 0 {
            commit_unmanaged_change(transaction, self.database.now(), &[], &retry.audited(retried)).await?;
        } else {
            // The pause has ended.
            transaction.commit().await?;
        }
        Ok(Some(retried))
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let old = Query::select()
            .column(Column::Id)
            .from(Entity)
            .and_where(Column::State.eq(DEAD))
            .and_where(Column::CreatedAt.lt(millis(before)))
            .limit(Ord::min(limit, u64::from(u32::MAX)))
            .to_owned();
        let pruned = Entity::delete_many()
            .filter(Column::Id.in_subquery(old))
            .exec(self.database.writer()?)
            .await
            .map_err(store_error)?;
        Ok(pruned.rows_affected)
    }
}

/// Ends the pause of a destination, and makes its messages that failed due now, without failures. Returns their number.
pub(super) async fn resume(
    transaction: &impl ConnectionTrait,
    destination: DestinationId,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    end_pause(transaction, destination).await?;
    let resumed = Entity::update_many()
        .col_expr(Column::Attempts, Expr::value(0))
        .col_expr(Column::NextAt, Expr::value(millis(now)))
        .filter(Column::DestinationId.eq(destination.to_string()))
        .filter(Column::State.eq(PENDING))
        // Others are due, or being sent for the first time.
        .filter(Column::Attempts.gt(0))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    Ok(resumed.rows_affected)
}

async fn end_pause(transaction: &impl ConnectionTrait, destination: DestinationId) -> Result<(), StoreError> {
    let ended = destination_pauses::Entity::delete_by_id(destination.to_string()).exec(transaction).await;
    ended.map_err(store_error).map(drop)
}

/// Removes the pause and all messages of a destination, in the transaction that deletes it.
pub(super) async fn forget(transaction: &impl ConnectionTrait, destination: DestinationId) -> Result<(), StoreError> {
    end_pause(transaction, destination).await?;
    Entity::delete_many()
        .filter(Column::DestinationId.eq(destination.to_string()))
        .exec(transaction)
        .await
        .map_err(store_error)
        .map(drop)
}

/// Returns true if the destination exists and meets a condition.
async fn destination_exists(
    connection: &impl ConnectionTrait,
    id: DestinationId,
    condition: impl IntoCondition,
) -> Result<bool, StoreError> {
    let found = destinations::Entity::find_by_id(id.to_string()).filter(condition);
    Ok(found.count(connection).await.map_err(store_error)? > 0)
}

fn due_at(now: DateTime<Utc>) -> Condition {
    Condition::all().add(Column::State.eq(PENDING)).add(Column::NextAt.lte(millis(now)))
}

async fn any(connection: &impl ConnectionTrait, condition: Condition) -> Result<bool, StoreError> {
    let id: Option<String> = Entity::find()
        .select_only()
        .column(Column::Id)
        .filter(condition)
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    Ok(id.is_some())
}

/// Returns the next destination in id order, due or not: one step in the index.
async fn next_destination(connection: &impl ConnectionTrait, after: &str) -> Result<Option<String>, StoreError> {
    let next: Option<Option<String>> = Entity::find()
        .select_only()
        .column_as(Column::DestinationId.min(), "next")
        .filter(Column::DestinationId.gt(after))
        .into_tuple()
        .one(connection)
        .await
        .map_err(store_error)?;
    Ok(next.flatten())
}

fn to_due(row: &Model) -> Result<DueMessage, StoreError> {
    let id: OutboxId = parse(&row.id, "outbox.id", &row.id)?;
    let message = OutboxMessage {
        id,
        destination_id: parse(&row.destination_id, "outbox.destination_id", id)?,
        payload: Json::parse(&row.payload).map_err(|_| corrupt("outbox.payload", id))?,
    };
    Ok(DueMessage {
        message,
        failures: row.attempts.try_into().map_err(|_| corrupt("outbox.attempts", id))?,
        created_at: moment(row.created_at, "outbox.created_at", id)?,
    })
}
