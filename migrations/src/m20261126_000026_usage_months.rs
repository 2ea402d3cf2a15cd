//! Usage records of PostgreSQL in one partition a month, so that a month is dropped as a whole.
//!
//! The ids of records begin with their time, so ranges of ids are ranges of time, and ids stay unique. The table becomes
//! the default partition of a new one with its name: no row is copied. Servers create the partitions of the months. SQLite
//! has no partitions.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

/// The migration of this module.
#[derive(DeriveMigrationName)]
pub struct Migration;

const PARTITION: &str = "
    ALTER TABLE usage_records RENAME TO usage_records_other;
    ALTER INDEX usage_records_workspace_id RENAME TO usage_records_other_workspace_id;
    ALTER INDEX usage_records_key RENAME TO usage_records_other_key;
    ALTER INDEX usage_records_charged_at RENAME TO usage_records_other_charged_at;
    CREATE TABLE usage_records (
        LIKE usage_records_other INCLUDING DEFAULTS, CONSTRAINT usage_records_id PRIMARY KEY (id)
    ) PARTITION BY RANGE (id);
    CREATE INDEX usage_records_workspace_id ON usage_records (workspace_id, created_at);
    CREATE INDEX usage_records_key ON usage_records (api_key, created_at);
    CREATE INDEX usage_records_charged_at ON usage_records (charged_at);
    ALTER TABLE usage_records ATTACH PARTITION usage_records_other DEFAULT";

const UNITE: &str = "
    ALTER TABLE usage_records RENAME TO usage_records_months;
    CREATE TABLE usage_records (LIKE usage_records_months INCLUDING DEFAULTS);
    INSERT INTO usage_records SELECT * FROM usage_records_months;
    DROP TABLE usage_records_months;
    ALTER TABLE usage_records ADD CONSTRAINT usage_records_pkey1 PRIMARY KEY (id);
    CREATE INDEX usage_records_workspace_id ON usage_records (workspace_id, created_at);
    CREATE INDEX usage_records_key ON usage_records (api_key, created_at);
    CREATE INDEX usage_records_charged_at ON usage_records (charged_at)";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        on_postgres(manager, PARTITION).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        on_postgres(manager, UNITE).await
    }
}

async fn on_postgres(manager: &SchemaManager<'_>, statements: &str) -> Result<(), DbErr> {
    if manager.get_database_backend() == DbBackend::Postgres {
        manager.get_connection().execute_unprepared(statements).await?;
    }
    Ok(())
}
