//! The list of steps.

use sea_orm_migration::{MigrationTrait, MigratorTrait};

use crate::{
    m20261121_000001_initial, m20261121_000002_usage_share, m20261121_000003_limits, m20261122_000004_files_and_audit,
    m20261122_000005_record_bytes,
};

/// Every step, oldest first. Steps are only ever added at the end.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261121_000001_initial::Migration),
            Box::new(m20261121_000002_usage_share::Migration),
            Box::new(m20261121_000003_limits::Migration),
            Box::new(m20261122_000004_files_and_audit::Migration),
            Box::new(m20261122_000005_record_bytes::Migration),
        ]
    }
}
