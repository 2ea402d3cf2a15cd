//! The list of migrations.

use sea_orm_migration::{MigrationTrait, MigratorTrait};

use crate::m20261126_000001_initial;

/// All migrations, oldest first. New ones are only added at the end.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m20261126_000001_initial::Migration)]
    }
}
