//! The number of endpoints in the configuration of the last server of the database.

use domain::error::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{EntityTrait, QuerySelect};

use crate::database::Database;
use crate::entities::store_identity::{Column, Entity};
use crate::errors::store_error;

impl Database {
    /// Returns the number that the last server recorded; `None` before the first one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be read.
    pub async fn configured_endpoints(&self) -> Result<Option<u64>, StoreError> {
        let query = Entity::find().select_only().column(Column::ConfiguredEndpoints);
        let found: Option<Option<i64>> = query.into_tuple().one(self.readers()?).await.map_err(store_error)?;
        Ok(found.flatten().and_then(|count| count.try_into().ok()))
    }

    /// Records the number; writes only if it differs.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the database cannot be written.
    pub async fn record_configured_endpoints(&self, count: u64) -> Result<(), StoreError> {
        if self.configured_endpoints().await? == Some(count) {
            return Ok(());
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let update = Entity::update_many().col_expr(Column::ConfiguredEndpoints, Expr::value(count));
        update.exec(self.writer()?).await.map_err(store_error)?;
        Ok(())
    }
}
