//! The list of migrations that older binaries do not support.
//!
//! A binary tolerates an applied migration that it does not know, unless the migration is listed here.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// The table of migrations that older binaries do not support: the `name` of the migration, and the `reason` for
/// operators.
pub const INCOMPATIBLE_MIGRATIONS: &str = "incompatible_migrations";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table(INCOMPATIBLE_MIGRATIONS)
            .col(ColumnDef::new("name").text().not_null().primary_key())
            .col(ColumnDef::new("reason").text().not_null())
            .to_owned();
        manager.create_table(table).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(INCOMPATIBLE_MIGRATIONS).to_owned()).await
    }
}
