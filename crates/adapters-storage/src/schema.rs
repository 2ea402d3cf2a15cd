//! The steps of the schema that a database has, and whether this program can use it.
//!
//! A database may have steps of a newer release: a step changes nothing that the release before reads or writes, so that
//! both run on one database while a release is rolled out. A step that breaks older programs says so in the table
//! `incompatible_migrations`.

use std::collections::{HashMap, HashSet};

use domain::error::StoreError;
use migrations::{INCOMPATIBLE_MIGRATIONS, Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

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
pub(crate) async fn status(connection: &impl ConnectionTrait) -> Result<Vec<MigrationState>, StoreError> {
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
pub(crate) async fn applied(connection: &impl ConnectionTrait) -> Result<HashSet<String>, StoreError> {
    if !has_table(connection, APPLIED).await? {
        return Ok(HashSet::new());
    }
    Ok(texts(connection, APPLIED, ["version", "version"]).await?.into_keys().collect())
}

/// Whether a table exists and can be read, and the role. `information_schema` would hide a table from a role without
/// rights, and a schema without rights is not in the search path.
const POSTGRES_TABLE: &str = "SELECT to_regclass($1) IS NOT NULL AS found, current_schema() IS NOT NULL AND \
                              coalesce(has_table_privilege(to_regclass($1), 'SELECT'), true) AS readable, \
                              current_user::text AS role";
const SQLITE_TABLE: &str = "SELECT count(*) > 0 AS found, true AS readable, '' AS role FROM sqlite_master \
                            WHERE type = 'table' AND name = $1";

/// Returns true if the table exists.
///
/// # Errors
/// The database cannot be read, or its role has no rights on the table or on every schema.
pub(crate) async fn has_table(connection: &impl ConnectionTrait, table: &str) -> Result<bool, StoreError> {
    let backend = connection.get_database_backend();
    let text = if backend == DbBackend::Postgres { POSTGRES_TABLE } else { SQLITE_TABLE };
    let query = Statement::from_sql_and_values(backend, text, [table.into()]);
    let row = connection.query_one_raw(query).await.map_err(store_error)?;
    let Some(row) = row else { return Ok(false) };
    if !row.try_get::<bool>("", "readable").map_err(store_error)? {
        let role: String = row.try_get("", "role").map_err(store_error)?;
        return Err(StoreError::unavailable(format!(
            "the role {role} has no rights on the schema or its tables: use the role that owns them, or grant it their rights"
        )));
    }
    row.try_get("", "found").map_err(store_error)
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
