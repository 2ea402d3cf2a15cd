//! The migrations of Tollgate's database schema. See this crate's README.md for how to add one.

mod m20261126_000001_initial;

pub use m20261126_000001_initial::INCOMPATIBLE_MIGRATIONS;
use sea_orm_migration::MigrationTrait;
/// The trait to run [`Migrator`].
pub use sea_orm_migration::MigratorTrait;

/// All migrations, oldest first. New ones are only added at the end.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m20261126_000001_initial::Migration)]
    }
}
