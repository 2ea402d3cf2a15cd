//! The change feed names the changed subjects: one row per change, numbered by one counter.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const CHANGES: &str = "changes";
/// The row of counters.
const FEED: &str = "change_feed";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let random = match manager.get_database_backend() {
            DbBackend::Sqlite => "(random())",
            _ => "(floor(random() * 9007199254740992)::bigint)",
        };
        manager.create_table(changes(random)).await?;
        for column in ["number", "limits"] {
            add_counter(manager, column).await?;
        }
        // Above every earlier number, so that grants under older limits are recognised as older.
        let statements = [
            format!("UPDATE {FEED} SET number = keys + catalogue + observability, limits = keys"),
            format!("INSERT INTO {CHANGES} (number, area, created_at) SELECT number, 'everything', 0 FROM {FEED}"),
        ];
        for statement in statements {
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        for column in ["keys", "observability"] {
            drop_counter(manager, column).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in ["keys", "observability"] {
            add_counter(manager, column).await?;
        }
        let counters = format!("UPDATE {FEED} SET keys = number, observability = number");
        manager.get_connection().execute_unprepared(&counters).await?;
        for column in ["number", "limits"] {
            drop_counter(manager, column).await?;
        }
        manager.drop_table(Table::drop().table(CHANGES).to_owned()).await
    }
}

/// `number` has no gaps. `mark` is random. `area` is the kind of the subject, which is a key's digest in hex or the id
/// of a workspace or of a guardrail, if any.
fn changes(random: &'static str) -> TableCreateStatement {
    Table::create()
        .table(CHANGES)
        .col(ColumnDef::new("number").big_integer().not_null().primary_key())
        .col(ColumnDef::new("mark").big_integer().not_null().default(Expr::cust(random)))
        .col(ColumnDef::new("area").text().not_null())
        .col(ColumnDef::new("subject").text())
        .col(ColumnDef::new("created_at").big_integer().not_null())
        .take()
}

async fn add_counter(manager: &SchemaManager<'_>, column: &'static str) -> Result<(), DbErr> {
    let mut counter = ColumnDef::new(column).big_integer().not_null().default(0).take();
    manager.alter_table(Table::alter().table(FEED).add_column(&mut counter).to_owned()).await
}

async fn drop_counter(manager: &SchemaManager<'_>, column: &'static str) -> Result<(), DbErr> {
    manager.alter_table(Table::alter().table(FEED).drop_column(column).to_owned()).await
}
