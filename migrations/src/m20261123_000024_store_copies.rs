//! The progress of a copy of another store into this one. The row exists until the copy is verified.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "store_copies";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(TABLE)
            .col(ColumnDef::new("id").integer().not_null().primary_key())
            // The identity of the source, and a digest of its state at the start of the copy.
            .col(ColumnDef::new("source_id").text().not_null())
            .col(ColumnDef::new("fingerprint").text().not_null())
            // JSON: the current table and the key of its last copied row.
            .col(ColumnDef::new("position").text().not_null())
            .col(ColumnDef::new("started_at").big_integer().not_null())
            .to_owned();
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}
