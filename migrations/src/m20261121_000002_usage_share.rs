//! Usage records store their share of a call's cost. Older records bear all of it.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "usage_records";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let index = ColumnDef::new("share_index").big_integer().not_null().default(0).take();
        let of = ColumnDef::new("share_of").big_integer().not_null().default(1).take();
        // SQLite adds one column per statement.
        for column in [index, of] {
            manager.alter_table(Table::alter().table(TABLE).add_column(column).to_owned()).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["share_of", "share_index"] {
            manager.alter_table(Table::alter().table(TABLE).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
