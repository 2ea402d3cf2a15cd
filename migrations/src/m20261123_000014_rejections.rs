//! The number of rejected requests per key, status, reason and hour.
//!
//! Rows of a key stay when the key is deleted, as its usage records do. Retention removes them by their hour.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "rejections";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(TABLE)
            .col(ColumnDef::new("api_key").binary().not_null())
            .col(ColumnDef::new("hour").big_integer().not_null())
            .col(ColumnDef::new("status").integer().not_null())
            .col(ColumnDef::new("reason").text().not_null())
            // Management keys have no workspace.
            .col(ColumnDef::new("workspace_id").binary())
            .col(ColumnDef::new("requests").big_integer().not_null())
            .primary_key(Index::create().col("api_key").col("hour").col("status").col("reason"))
            .to_owned();
        manager.create_table(table).await?;
        let index = Index::create().name("rejections_by_hour").table(TABLE).col("hour").to_owned();
        manager.create_index(index).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}
