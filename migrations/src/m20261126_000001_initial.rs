//! The schema of the first release.
//!
//! Column types: ids are text, or 16 bytes for keys and in usage records; digests are bytes; money is whole picodollars
//! in 64 bits; prices are decimal text; timestamps are Unix milliseconds, durations microseconds; opaque JSON is text.

mod columns;
mod ledger;
mod store;
mod tenants;

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

pub use store::INCOMPATIBLE_MIGRATIONS;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in tables(manager.get_database_backend()) {
            manager.create_table(table).await?;
        }
        ledger::create_records(manager).await?;
        let indexes = [tenants::indexes(), ledger::indexes(), store::indexes()];
        for index in indexes.into_iter().flatten() {
            manager.create_index(index).await?;
        }
        store::insert_first_rows(manager).await?;
        store::insert_audit_state(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(ledger::RECORDS).to_owned()).await?;
        let tables = tables(manager.get_database_backend());
        for name in tables.iter().rev().filter_map(TableCreateStatement::get_table_name) {
            manager.drop_table(Table::drop().table(name.clone()).to_owned()).await?;
        }
        Ok(())
    }
}

/// Returns all tables but that of the usage records. Each refers to earlier ones only.
fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    [tenants::tables(), ledger::tables(backend), store::tables(backend)].into_iter().flatten().collect()
}
