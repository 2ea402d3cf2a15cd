//! Requests with an idempotency key, stored with the audit entries of their changes.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::error::StoreError;
use domain::repetition::{
    IdempotentRequests, REPETITION_KEPT, Repetition, RepetitionScope, StoredRepetition, StoredResponse,
};
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect, Select,
};

use crate::convert::{millis, parse};
use crate::entities::idempotent_requests::{Column, Entity, Model};
use crate::errors::{corrupt, store_error};

repository! {
    /// Finds stored requests in the database.
    SeaOrmIdempotentRequests
}

const TABLE: &str = "idempotent_requests";

#[async_trait]
impl IdempotentRequests for SeaOrmIdempotentRequests {
    async fn find(&self, scope: &RepetitionScope) -> Result<Option<StoredRepetition>, StoreError> {
        let row = by_scope(scope)
            .filter(Column::CreatedAt.gt(oldest(self.database.now())))
            .one(self.database.readers()?)
            .await
            .map_err(store_error)?;
        row.map(|row| to_stored(scope, row)).transpose()
    }

    async fn store(&self, stored: &StoredRepetition) -> Result<(), StoreError> {
        let transaction = self.database.begin().await?;
        store(&transaction, stored, self.database.now()).await?;
        transaction.commit().await
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let transaction = self.database.begin().await?;
        let last: Option<i64> = Entity::find()
            .select_only()
            .column(Column::CreatedAt)
            .filter(Column::CreatedAt.lt(millis(before)))
            .order_by_asc(Column::CreatedAt)
            .offset(limit.saturating_sub(1).min(u64::from(u32::MAX)))
            .limit(1)
            .into_tuple()
            .one(&transaction)
            .await
            .map_err(store_error)?;
        // Rows of one millisecond go together, so a step may remove a few more.
        let old = match last {
            Some(last) => Column::CreatedAt.lte(last),
            None => Column::CreatedAt.lt(millis(before)),
        };
        let pruned = Entity::delete_many().filter(old).exec(&transaction).await.map_err(store_error)?;
        transaction.commit().await?;
        Ok(pruned.rows_affected)
    }
}

/// Stores a request in the transaction of its change, which holds the write lock.
///
/// # Errors
/// [`StoreError::Repeated`] if a request of this scope is stored.
pub(crate) async fn store(
    transaction: &impl ConnectionTrait,
    stored: &StoredRepetition,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let before = by_scope(&stored.request.scope).one(transaction).await.map_err(store_error)?;
    if let Some(before) = before {
        if before.created_at > oldest(at) {
            return Err(StoreError::Repeated);
        }
        Entity::delete_by_id((before.caller, before.route, before.request_key))
            .exec(transaction)
            .await
            .map_err(store_error)?;
    }
    let row = to_row(stored, at).into_active_model();
    Entity::insert(row).exec_without_returning(transaction).await.map_err(store_error).map(drop)
}

/// Returns the time up to which requests no longer count as stored.
fn oldest(now: DateTime<Utc>) -> i64 {
    millis(now).saturating_sub(REPETITION_KEPT.num_milliseconds())
}

fn by_scope(scope: &RepetitionScope) -> Select<Entity> {
    Entity::find_by_id((scope.caller.clone(), scope.route.clone(), scope.key.as_str().to_owned()))
}

fn to_row(StoredRepetition { request, response }: &StoredRepetition, at: DateTime<Utc>) -> Model {
    let scope = &request.scope;
    let (status, body, version, secret_of) = match response {
        StoredResponse::Content { status, body, version } => {
            (Some(i64::from(*status)), Some(body.clone()), version.map(|version| version.to_string()), None)
        }
        StoredResponse::Secret { id } => (None, None, None, Some(id.clone())),
    };
    Model {
        caller: scope.caller.clone(),
        route: scope.route.clone(),
        request_key: scope.key.as_str().to_owned(),
        fingerprint: request.fingerprint.to_vec(),
        status,
        body,
        version,
        secret_of,
        created_at: millis(at),
    }
}

fn to_stored(scope: &RepetitionScope, row: Model) -> Result<StoredRepetition, StoreError> {
    let broken = || corrupt(TABLE, &scope.key);
    let response = match (row.secret_of, row.status, row.body) {
        (Some(id), None, None) => StoredResponse::Secret { id },
        (None, Some(status), Some(body)) => StoredResponse::Content {
            status: status.try_into().map_err(|_| broken())?,
            body,
            version: row
                .version
                .map(|version| parse(&version, "idempotent_requests.version", &scope.key))
                .transpose()?,
        },
        _ => return Err(broken()),
    };
    let fingerprint = row.fingerprint.try_into().map_err(|_| broken())?;
    Ok(StoredRepetition { request: Repetition { scope: scope.clone(), fingerprint }, response })
}
