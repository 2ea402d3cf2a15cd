//! The identity of the store: journals name the store that they are folded into.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "store_identity";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(TABLE)
            .col(ColumnDef::new("id").integer().not_null().primary_key())
            .col(ColumnDef::new("store_id").text().not_null())
            .to_owned();
        manager.create_table(table).await?;
        let random = match manager.get_database_backend() {
            DbBackend::Sqlite => "lower(hex(randomblob(16)))",
            _ => "replace(gen_random_uuid()::text, '-', '')",
        };
        let insert = format!("INSERT INTO {TABLE} (id, store_id) VALUES (1, {random})");
        manager.get_connection().execute_unprepared(&insert).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(TABLE).to_owned()).await
    }
}
