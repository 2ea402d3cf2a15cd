//! The time of a process's last answer to recalls of allowances, and the start of a recall.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const PROCESSES: &str = "budget_processes";
const COUNTERS: &str = "spend_counters";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let seen_at = ColumnDef::new("seen_at").big_integer().not_null().default(0).take();
        manager.alter_table(Table::alter().table(PROCESSES).add_column(seen_at).to_owned()).await?;
        let began_at = ColumnDef::new("recall_began_at").big_integer().take();
        manager.alter_table(Table::alter().table(COUNTERS).add_column(began_at).to_owned()).await?;
        let seen = "UPDATE budget_processes SET seen_at = registered_at";
        manager.get_connection().execute_unprepared(seen).await?;
        let began = "UPDATE spend_counters SET recall_began_at = recalled_at WHERE recalled_at IS NOT NULL";
        manager.get_connection().execute_unprepared(began).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in [(PROCESSES, "seen_at"), (COUNTERS, "recall_began_at")] {
            manager.alter_table(Table::alter().table(table).drop_column(column).to_owned()).await?;
        }
        Ok(())
    }
}
