//! The schema of both databases, compared with the listings in `migrations/schema`.
//!
//! `cargo xtask golden` writes the listings, so that a review of a migration sees its effect on each database.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Folder, open};
use sea_orm::{ConnectionTrait, DatabaseConnection, SqlxSqliteConnector, Statement};

/// The tables, columns, constraints and indexes of PostgreSQL, one a line.
const POSTGRES: &str = "
    SELECT line FROM (
        SELECT table_name AS owner, 1 AS kind, ordinal_position AS position,
               '  ' || column_name || ' ' || data_type
               || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
               || coalesce(' default ' || column_default, '') AS line
        FROM information_schema.columns WHERE table_schema = current_schema()
        UNION ALL
        SELECT table_name, 0, 0, 'table ' || table_name
        FROM information_schema.tables WHERE table_schema = current_schema()
        UNION ALL
        -- Later versions list NOT NULL as constraints.
        SELECT conrelid::regclass::text, 2, 0, '  constraint ' || conname || ' ' || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND contype <> 'n'
        UNION ALL
        SELECT tablename, 3, 0, '  ' || regexp_replace(indexdef, ' ON (ONLY )?[^ .]+\\.', ' ON \\1')
        FROM pg_indexes WHERE schemaname = current_schema() AND NOT EXISTS (
            SELECT FROM pg_constraint WHERE conname = indexname AND contype IN ('p', 'u', 'x'))
    ) AS lines ORDER BY owner, kind, position, line";

/// The statements of SQLite, with its own indexes left out.
const SQLITE: &str = "
    SELECT sql || ';' AS line FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
    ORDER BY tbl_name, type DESC, name";

async fn listing(connection: &DatabaseConnection, query: &str) -> String {
    let query = Statement::from_string(connection.get_database_backend(), query);
    let rows = connection.query_all_raw(query).await.unwrap();
    rows.iter().map(|row| row.try_get_by_index::<String>(0).unwrap() + "\n").collect()
}

/// Puts each column of a `CREATE TABLE` on its own line, for readable differences.
fn column_lines(statement: &str) -> String {
    if !statement.starts_with("CREATE TABLE") {
        return statement.to_owned();
    }
    let (mut lines, mut depth) = (String::new(), 0);
    for character in statement.chars() {
        lines.push(character);
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 1 && matches!(character, '(' | ',') {
            lines.push_str("\n ");
        }
    }
    lines
}

/// Compares, or writes the file when `cargo xtask golden` asks for it.
fn same_as_file(name: &str, actual: &str) {
    let path = format!("{}/../../migrations/schema/{name}", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "a test, not the service: it has no configuration")]
    if std::env::var_os("TOLLGATE_WRITE_GOLDEN").is_some() {
        std::fs::write(path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let different = actual.lines().zip(expected.lines()).find(|(actual, expected)| actual != expected);
    assert!(actual == expected, "{name}: {different:?}; `cargo xtask golden` writes the listings");
}

#[tokio::test]
async fn schema_of_sqlite_is_as_listed() {
    let folder = Folder::new();
    open(&folder.settings()).await.close().await;
    let raw = SqlxSqliteConnector::from_sqlx_sqlite_pool(folder.raw().await);
    let statements = listing(&raw, SQLITE).await;
    let lines: String = statements.lines().map(|statement| column_lines(statement) + "\n").collect();
    same_as_file("sqlite.sql", &lines);
}

#[tokio::test]
async fn schema_of_postgres_is_as_listed() {
    let server = test_servers::Postgres::start().unwrap();
    let url = server.create_database().unwrap();
    open(&adapters_storage::StorageSettings::new(&url)).await.close().await;
    let raw = sea_orm::Database::connect(&url).await.unwrap();
    same_as_file("postgres.txt", &listing(&raw, POSTGRES).await);
}
