//! Bounds on documents, and an audit log that proves more.

use sea_orm_migration::prelude::*;

/// See the module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COUNTERS {
            let at_least_zero = Expr::col(*column).gte(0);
            let column = ColumnDef::new(*column).big_integer().not_null().default(0).check(at_least_zero).take();
            add(manager, table, column).await?;
        }
        let connection = manager.get_connection();
        // Documents keep what was taken for them, so that removing one returns as much.
        connection.execute_unprepared("UPDATE documents SET charged_bytes = size_bytes").await?;
        let count = "UPDATE workspaces SET document_count = \
                     (SELECT COUNT(*) FROM documents WHERE documents.workspace_id = workspaces.id)";
        connection.execute_unprepared(count).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COUNTERS {
            manager.alter_table(Table::alter().table(*table).drop_column(*column).to_owned()).await?;
        }
        Ok(())
    }
}

const COUNTERS: &[(&str, &str)] = &[("documents", "charged_bytes"), ("workspaces", "document_count")];

async fn add(manager: &SchemaManager<'_>, table: &'static str, mut column: ColumnDef) -> Result<(), DbErr> {
    // SQLite takes one column at a time.
    manager.alter_table(Table::alter().table(table).add_column(&mut column).to_owned()).await
}
