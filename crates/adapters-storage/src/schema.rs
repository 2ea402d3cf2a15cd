//! The steps of the schema that a database has, and whether this program can use it.
//!
//! A database may have steps of a newer release: a step changes nothing that the release before reads or writes, so that
//! both run on one database while a release is rolled out. A step that breaks older programs says so in the table
//! `incompatible_migrations`.

use std::collections::{HashMap, HashSet};

use domain::error::StoreError;
use migrations::{INCOMPATIBLE_MIGRATIONS, Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, Statement};
use sea_orm_migration::SchemaManager;

use crate::errors::store_error;

/// The table in which the library keeps the names of the applied steps.
const APPLIED: &str = "seaql_migrations";

/// A schema migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationState {
    /// The name, which begins with its date.
    pub name: String,
    /// True if the database has it.
    pub applied: bool,
    /// False if this program does not know it: a newer release applied it.
    pub known: bool,
}

impl MigrationState {
    /// Returns the state of a migration that this program knows.
    fn known(name: &str, applied: bool) -> Self {
        Self { name: name.to_owned(), applied, known: true }
    }
}

/// Returns every step that this program knows, oldest first, then those of the database that it does not know. Changes
/// nothing.
///
/// # Errors
/// [`StoreError::Corrupt`] where the database has a step that this program does not know and that is incompatible with
/// it, or lacks a step although it has one of a newer release.
pub(crate) async fn status<'c, C>(connection: &'c C) -> Result<Vec<MigrationState>, StoreError>
where
    C: ConnectionTrait,
    &'c C: sea_orm_migration::IntoSchemaManagerConnection<'c>,
{
    let applied = applied(connection).await?;
    let known: Vec<String> = Migrator::migrations().iter().map(|step| step.name().to_owned()).collect();
    let mut states: Vec<MigrationState> =
        known.iter().map(|name| MigrationState::known(name, applied.contains(name))).collect();
    let mut newer: Vec<&String> = applied.iter().filter(|name| !known.contains(name)).collect();
    newer.sort_unstable();
    if newer.is_empty() {
        return Ok(states);
    }
    if has_table(connection, INCOMPATIBLE_MIGRATIONS).await? {
        let incompatible = texts(connection, INCOMPATIBLE_MIGRATIONS, ["name", "reason"]).await?;
        if let Some((name, reason)) = newer.iter().find_map(|name| incompatible.get_key_value(*name)) {
            return Err(StoreError::Corrupt(format!(
                "the database was migrated by a newer release that this one cannot work beside ({name}: {reason}); run \
                 that release, or restore a backup"
            )));
        }
    }
    if let Some(missing) = states.iter().find(|state| !state.applied) {
        return Err(StoreError::Corrupt(format!(
            "the database has the migration {} of a newer release and lacks {}: it was migrated by another program",
            newer[0], missing.name
        )));
    }
    states.extend(newer.into_iter().map(|name| MigrationState { name: name.clone(), applied: true, known: false }));
    Ok(states)
}

/// Returns the names of the applied steps, also of those that this program does not know.
pub(crate) async fn applied<'c, C>(connection: &'c C) -> Result<HashSet<String>, StoreError>
where
    C: ConnectionTrait,
    &'c C: sea_orm_migration::IntoSchemaManagerConnection<'c>,
{
    if !has_table(connection, APPLIED).await? {
        return Ok(HashSet::new());
    }
    Ok(texts(connection, APPLIED, ["version", "version"]).await?.into_keys().collect())
}

/// Returns true if the table exists.
pub(crate) async fn has_table<'c, C>(connection: &'c C, table: &str) -> Result<bool, StoreError>
where
    &'c C: sea_orm_migration::IntoSchemaManagerConnection<'c>,
{
    SchemaManager::new(connection).has_table(table).await.map_err(store_error)
}

/// Two text columns of a table, the first one unique.
async fn texts(
    connection: &impl ConnectionTrait,
    table: &str,
    [key, value]: [&str; 2],
) -> Result<HashMap<String, String>, StoreError> {
    let query = format!("SELECT {key} AS k, {value} AS v FROM {table}");
    let query = Statement::from_string(connection.get_database_backend(), query);
    let rows = connection.query_all_raw(query).await.map_err(store_error)?;
    let pair = |row: &sea_orm::QueryResult| Ok((row.try_get("", "k")?, row.try_get("", "v")?));
    rows.iter().map(pair).collect::<Result<_, sea_orm::DbErr>>().map_err(store_error)
}
