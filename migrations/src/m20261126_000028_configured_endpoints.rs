//! The number of endpoints in the configuration of the last server: a start without any is then recognised as a loss.
//! Null before the first one.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "store_identity";
const COLUMN: &str = "configured_endpoints";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = ColumnDef::new(COLUMN).big_integer().null().to_owned();
        manager.alter_table(Table::alter().table(TABLE).add_column(column).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table(TABLE).drop_column(COLUMN).to_owned()).await
    }
}
