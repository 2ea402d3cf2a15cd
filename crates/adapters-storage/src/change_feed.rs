//! The counters of changes.

use async_trait::async_trait;
use domain::change_feed::{ChangeFeed, ChangeVersions};
use domain::error::StoreError;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter};

use crate::convert::unsigned;
use crate::database::Database;
use crate::entities::change_feed;
use crate::errors::store_error;

/// Reads the counters from the database.
#[derive(Clone)]
pub struct SeaOrmChangeFeed {
    database: Database,
}

impl SeaOrmChangeFeed {
    /// Over an open database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

/// The only row's id.
const ONLY: i32 = 1;

#[async_trait]
impl ChangeFeed for SeaOrmChangeFeed {
    async fn versions(&self) -> Result<ChangeVersions, StoreError> {
        versions(self.database.readers()?).await
    }
}

pub(crate) async fn versions(connection: &impl ConnectionTrait) -> Result<ChangeVersions, StoreError> {
    let row = change_feed::Entity::find_by_id(ONLY).one(connection).await.map_err(store_error)?;
    let row = row.ok_or_else(missing)?;
    Ok(ChangeVersions {
        keys: unsigned(row.keys, "change_feed.keys", ONLY)?,
        catalogue: unsigned(row.catalogue, "change_feed.catalogue", ONLY)?,
        observability: unsigned(row.observability, "change_feed.observability", ONLY)?,
    })
}

/// Raises the counter of keys; part of the transaction that changes one.
pub(crate) async fn raise_keys(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    raise(transaction, change_feed::Column::Keys).await
}

/// Raises the counter of the catalogue; part of the transaction that changes it.
pub(crate) async fn raise_catalogue(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    raise(transaction, change_feed::Column::Catalogue).await
}

/// Raises the counter of destinations; part of the transaction that changes one.
pub(crate) async fn raise_observability(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    raise(transaction, change_feed::Column::Observability).await
}

async fn raise(transaction: &impl ConnectionTrait, counter: change_feed::Column) -> Result<(), StoreError> {
    let raised = change_feed::Entity::update_many()
        .col_expr(counter, Expr::col(counter).add(1))
        .filter(change_feed::Column::Id.eq(ONLY))
        .exec(transaction)
        .await
        .map_err(store_error)?;
    if raised.rows_affected == 1 { Ok(()) } else { Err(missing()) }
}

fn missing() -> StoreError {
    StoreError::Corrupt("change_feed has lost its row".to_owned())
}
