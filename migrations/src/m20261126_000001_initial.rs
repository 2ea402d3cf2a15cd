//! The schema of the first release.
//!
//! Column types: ids are text, or 16 bytes for keys and in usage records; digests are bytes; money is whole picodollars
//! in 64 bits; prices are decimal text; timestamps are Unix milliseconds, durations microseconds; opaque JSON is text.

mod audit;
mod columns;
mod files;
mod ledger;
mod store;
mod tenants;
mod usage;

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in tables(manager.get_database_backend()) {
            manager.create_table(table).await?;
        }
        usage::create_records(manager).await?;
        let indexes = [
            tenants::indexes(),
            files::indexes(),
            ledger::indexes(),
            usage::indexes(),
            audit::indexes(),
            store::indexes(),
        ];
        for index in indexes.into_iter().flatten() {
            manager.create_index(index).await?;
        }
        store::insert_first_rows(manager).await?;
        audit::insert_first_row(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(usage::RECORDS).to_owned()).await?;
        let tables = tables(manager.get_database_backend());
        for name in tables.iter().rev().filter_map(TableCreateStatement::get_table_name) {
            manager.drop_table(Table::drop().table(name.clone()).to_owned()).await?;
        }
        Ok(())
    }
}

/// Returns all tables but that of the usage records. Each refers to earlier ones only.
fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    [tenants::tables(), files::tables(), ledger::tables(), usage::tables(), audit::tables(), store::tables(backend)]
        .into_iter()
        .flatten()
        .collect()
}
