//! Databases that can hold rows of older schemas.

use sea_orm_migration::SchemaManager;
use sea_orm_migration::sea_orm::DbBackend;

/// Returns true if the database may hold rows written under earlier migrations of this list. PostgreSQL is supported
/// since a later one than those that ask, so there the tables are still empty, and SQL of SQLite is left out.
pub(crate) fn holds_older_data(manager: &SchemaManager<'_>) -> bool {
    manager.get_database_backend() == DbBackend::Sqlite
}
