//! The time of a workspace's deletion.
//!
//! The row of a deleted workspace stays, because usage records, counters and deleted keys refer to it. Without the column
//! a deleted workspace exists again, without keys, and the audit log reports its row.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const TABLE: &str = "workspaces";
const COLUMN: &str = "deleted_at";

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
