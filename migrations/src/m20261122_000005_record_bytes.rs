//! The bytes of usage records that each workspace wrote on the UTC day of its last record.
//!
//! One row per workspace, which restarts at zero on another day, so the table needs no cleanup.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "record_bytes";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(TABLE)
            .col(ColumnDef::new("workspace_id").text().not_null().primary_key())
            .col(ColumnDef::new("day").big_integer().not_null())
            .col(ColumnDef::new("bytes").big_integer().not_null())
            .to_owned();
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}
