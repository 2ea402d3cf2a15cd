//! Journals in the store: their entries, the kind of journal of each process, and the time at which a process found that
//! the store is older than itself.

use sea_orm_migration::prelude::*;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const ENTRIES: &str = "journal_entries";
const PROCESSES: &str = "budget_processes";
/// The index of processes whose journals are being recovered, beside that of the live ones.
const ADOPTED: &str = "budget_processes_adopted";
const FEED: &str = "change_feed";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let entries = Table::create()
            .table(ENTRIES)
            .col(ColumnDef::new("process_id").text().not_null())
            .col(ColumnDef::new("sequence").big_integer().not_null())
            .col(ColumnDef::new("kind").integer().not_null())
            .col(ColumnDef::new("payload").blob().not_null())
            .primary_key(Index::create().col("process_id").col("sequence"))
            .to_owned();
        manager.create_table(entries).await?;
        // True if the entries of the process are in the store, so that any process can recover them.
        let column = ColumnDef::new("has_store_journal").boolean().not_null().default(false).to_owned();
        manager.alter_table(Table::alter().table(PROCESSES).add_column(column).to_owned()).await?;
        let adopted = Index::create()
            .name(ADOPTED)
            .table(PROCESSES)
            .col("id")
            .cond_where(Expr::col("state").eq("adopted"))
            .to_owned();
        manager.create_index(adopted).await?;
        let column = ColumnDef::new("declared_older_at").big_integer().null().to_owned();
        manager.alter_table(Table::alter().table(FEED).add_column(column).to_owned()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.alter_table(Table::alter().table(FEED).drop_column("declared_older_at").to_owned()).await?;
        manager.drop_index(Index::drop().name(ADOPTED).table(PROCESSES).to_owned()).await?;
        manager.alter_table(Table::alter().table(PROCESSES).drop_column("has_store_journal").to_owned()).await?;
        manager.drop_table(Table::drop().table(ENTRIES).to_owned()).await
    }
}
