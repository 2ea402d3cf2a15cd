//! Exports that end early.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tollgate_tests::{Call, Instance, SecondHand};

use crate::gateway::{TestGateway, body};

/// More records than both ends of a connection buffer.
const RECORDS: usize = 20_000;
/// The end of a chunked body.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Starts a gateway with many records.
async fn with_records() -> Result<(TestGateway, SecondHand)> {
    let gateway = TestGateway::of(Instance::on_file("")?).await?;
    gateway.decide(body("sandbox/decider")).await?;
    ensure!(crate::costs::rows(&gateway.instance.json(&["usage", "list"]).await?)?.len() == 1);
    let database = SecondHand::of(&gateway.instance).await?;
    let script = format!(
        "BEGIN; CREATE TEMP TABLE many AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {RECORDS}) \
         SELECT usage_records.* FROM usage_records, n; \
         UPDATE many SET id = CAST('gen-dec-more-no-' || rowid AS BLOB); \
         INSERT INTO usage_records SELECT * FROM many; DROP TABLE many; COMMIT"
    );
    database.execute(&script).await?;
    Ok((gateway, database))
}

#[tokio::test]
async fn export_without_its_end_is_noticed_by_the_client() -> Result<()> {
    let (gateway, database) = with_records().await?;
    let secret = &gateway.management.secret;
    for format in ["csv", "jsonl"] {
        let path = format!("/api/v1/generations?format={format}");
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(64 << 10)?;
        let mut stream = socket.connect(gateway.server.address()).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = vec![0; 1_000];
        stream.read_exact(&mut answer).await?;
        ensure!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        // The table disappears under the running export.
        database.execute("ALTER TABLE usage_records RENAME TO gone").await?;
        let read = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut answer)).await;
        read.context("the connection stays open")?.ok();
        database.execute("ALTER TABLE gone RENAME TO usage_records").await?;
        ensure!(!answer.ends_with(LAST_CHUNK), "{format}: a truncated export has its last chunk");
        let lines = String::from_utf8_lossy(&answer).lines().count();
        ensure!(lines < RECORDS, "{format}: {lines} lines");
    }
    let log = gateway.server.output();
    ensure!(log.matches("export ended early").count() == 2, "{log}");
    // The next export of the key is whole.
    let whole = gateway.server.send(&Call::get("/api/v1/generations?format=csv").key(secret)).await?;
    ensure!(whole.status == 200 && whole.text().lines().count() == RECORDS + 2, "{}", whole.text().lines().count());
    gateway.server.ensure_healthy().await
}
