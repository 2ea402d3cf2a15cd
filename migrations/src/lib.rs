//! The migrations of Tollgate's database schema. See this crate's README.md for how to add one.

mod m20261126_000001_initial;
mod migrator;

pub use migrator::Migrator;
/// The trait to run [`Migrator`].
pub use sea_orm_migration::MigratorTrait;

/// The table of migrations that older binaries do not support: the `name` of the migration, and the `reason` for
/// operators. A binary tolerates any other migration that it does not know.
pub const INCOMPATIBLE_MIGRATIONS: &str = "incompatible_migrations";
