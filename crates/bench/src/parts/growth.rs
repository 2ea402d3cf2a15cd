//! Reads of the management API and an export beside many keys and records, on SQLite and on PostgreSQL.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, Statement};
use test_servers::Postgres;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::bench::{Bench, mib, print_progress};
use super::management::read;
use crate::clock::now;
use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::process::{peak_while, rss_kib};
use crate::report::{Bound, Figure};
use crate::wires::{INBOUND, OUTBOUND};
use crate::{seed, statistics};

/// Records that one statement copies: a transaction stays small.
const COPIED_AT_ONCE: usize = 100_000;
/// Days and workspaces of the sums.
const DAYS: usize = 1_000;
const WORKSPACES: usize = 100;

/// Measures beside as many records as the options name.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = beside(bench, &bench.gateway, "SQLite").await?;
    print_progress("PostgreSQL with keys");
    let server = Postgres::start_durable()?;
    let mut gateway = Gateway::install_on(server.create_database()?, &bench.tollgate, bench.upstream.address).await?;
    let workspace = gateway.workspace_id.parse().context("the workspace's id")?;
    seed::keys(gateway.database_url(), workspace, bench.keys.len()).await?;
    gateway.start().await?;
    figures.extend(beside(bench, &gateway, "PostgreSQL").await?);
    gateway.stop().await?;
    Ok(figures)
}

async fn beside(bench: &Bench, gateway: &Gateway, store: &str) -> Result<Vec<Figure>> {
    print_progress(&format!("records on {store}"));
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let decide = http::request("POST", "/api/v1/api/alpha/decisions", &gateway.inference_key, Some(body.as_bytes()));
    call_once(gateway.address, &decide).await?;
    // The record is folded within a tick of the journal.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut options = ConnectOptions::new(gateway.database_url());
    options.max_connections(1);
    let database = Database::connect(options).await?;
    copy_record(&database, bench.records).await?;
    spread_sums(&database).await?;
    if database.get_database_backend() == sea_orm::DatabaseBackend::Postgres {
        // As autovacuum does within a minute.
        database.execute_unprepared("VACUUM ANALYZE").await?;
    }
    database.close().await?;
    print_progress(&format!("reads on {store}"));
    let management = gateway.management_key.as_str();
    let mut figures = Vec::new();
    for (name, path, key, most) in [
        ("the first page of keys", "/api/v1/keys?limit=100", management, 20.0),
        ("the caller's key", "/api/v1/key", gateway.inference_key.as_str(), 5.0),
        ("a page of records", "/api/v1/generations?limit=100", management, 20.0),
        ("a year of usage by day and model", YEAR, management, 50.0),
    ] {
        figures.push(read((bench, gateway), &format!("{store}, {name}"), path, key, most).await?);
    }
    figures.extend(export(gateway, store, bench.records).await?);
    Ok(figures)
}

/// A year among the days of [`spread_sums`].
const YEAR: &str = "/api/v1/usage?group_by=day,model&since=2025-01-01&until=2026-01-01";

/// Copies the newest record until the table has `count` more.
async fn copy_record(database: &DatabaseConnection, count: usize) -> Result<()> {
    let backend = database.get_database_backend();
    let is_sqlite = backend == sea_orm::DatabaseBackend::Sqlite;
    let all = Statement::from_string(backend, "SELECT * FROM usage_records ORDER BY charged_at DESC LIMIT 1");
    let row = database.query_one_raw(all).await?.context("the first answer has no record yet")?;
    let others: Vec<String> = row.column_names().into_iter().filter(|name| name != "id").collect();
    let columns = others.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let copied = columns
        .replace("\"charged_at\"", "charged_at - number / 10")
        .replace("\"created_at\"", "created_at - number / 10");
    // The ids of copies begin with zeros: no real id does.
    let id = if is_sqlite { "unhex(printf('%032x', number))" } else { "decode(lpad(to_hex(number), 32, '0'), 'hex')" };
    for first in (1..=count).step_by(COPIED_AT_ONCE) {
        let last = count.min(first + COPIED_AT_ONCE - 1);
        database
            .execute_unprepared(&format!(
                "WITH RECURSIVE numbers(number) AS \
                 (SELECT {first} UNION ALL SELECT number + 1 FROM numbers WHERE number < {last}), \
                 record AS (SELECT * FROM usage_records ORDER BY charged_at DESC LIMIT 1) \
                 INSERT INTO usage_records (id, {columns}) SELECT {id}, {copied} FROM record, numbers"
            ))
            .await?;
    }
    Ok(())
}

/// Adds a sum of all keys for each of [`DAYS`] days and each of [`WORKSPACES`] workspaces.
async fn spread_sums(database: &DatabaseConnection) -> Result<()> {
    let is_sqlite = database.get_database_backend() == sea_orm::DatabaseBackend::Sqlite;
    let workspace =
        if is_sqlite { "unhex(printf('%032x', tenant))" } else { "decode(lpad(to_hex(tenant), 32, '0'), 'hex')" };
    let of_all_keys = if is_sqlite { "x''" } else { "''::bytea" };
    let first = "(SELECT MIN(day) FROM usage_sums)";
    database
        .execute_unprepared(&format!(
            "WITH RECURSIVE days(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM days WHERE number < {DAYS}), \
             tenants(tenant) AS (SELECT 1 UNION ALL SELECT tenant + 1 FROM tenants WHERE tenant < {WORKSPACES}), \
             sum AS (SELECT * FROM usage_sums LIMIT 1) \
             INSERT INTO usage_sums (day, workspace_id, api_key, model, provider, requests, input_tokens, \
             output_tokens, cost_pico) SELECT {first} - number * CAST(86400000 AS bigint), {workspace}, {of_all_keys}, \
             model, provider, requests, input_tokens, output_tokens, cost_pico FROM sum, days, tenants"
        ))
        .await?;
    Ok(())
}

/// Exports all records, and measures the memory that the server takes beside.
async fn export(gateway: &Gateway, store: &str, records: usize) -> Result<Vec<Figure>> {
    print_progress(&format!("an export on {store}"));
    let pid = gateway.pid()?;
    let before = rss_kib(pid)?;
    let began = now();
    let (lines, peak) = peak_while(pid, exported_lines(gateway)).await?;
    let took = began.elapsed().as_secs_f64();
    ensure!(lines > records, "the export has {lines} lines for {records} records");
    Ok(vec![
        Figure::single(
            format!("{store}, export of {records} records, a second"),
            "1/s",
            statistics::figure(lines as u64) / took,
        ),
        Figure::single(
            format!("{store}, export of {records} records, memory added"),
            "MiB",
            mib(peak.saturating_sub(before)),
        )
        .with_bound(Bound::AtMost(16.0)),
    ])
}

/// Reads the export of all records as it comes, and counts its line ends.
async fn exported_lines(gateway: &Gateway) -> Result<usize> {
    let mut stream = TcpStream::connect(gateway.address).await?;
    let path = "/api/v1/generations?format=csv&since=2026-01-01";
    let request = String::from_utf8(http::request("GET", path, &gateway.management_key, None))?;
    stream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).await?;
    let (mut lines, mut end) = (0, Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        // Frames of the transfer add a few.
        lines += buffer[..read].split(|byte| *byte == b'\n').count() - 1;
        end.extend_from_slice(&buffer[read.saturating_sub(5)..read]);
        end.drain(..end.len().saturating_sub(5));
    }
    ensure!(end == b"0\r\n\r\n", "the export was cut off");
    Ok(lines)
}
