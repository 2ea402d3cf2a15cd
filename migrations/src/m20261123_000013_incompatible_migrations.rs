//! The steps that older programs cannot work beside.
//!
//! A program that finds an applied step which it does not know goes on, unless the step is listed here.

use sea_orm_migration::prelude::*;

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

/// The table of the steps that older programs cannot work beside: `name` of the step, `reason` for people.
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
