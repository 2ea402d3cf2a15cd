//! Downloads of documents, from a folder and from a bucket.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tollgate_tests::{Instance, Reply, free_address};

use crate::files::{call, promote};
use crate::gateway::TestGateway;
use crate::metrics::Scrape;

/// More than both ends of a connection buffer.
const LARGE: usize = 24 << 20;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap_or_default()).collect()
}

pub async fn download(gateway: &TestGateway, path: &str, headers: &[(&str, &str)]) -> Result<Reply> {
    let get = call(gateway, Method::GET, path);
    gateway.server.send(&headers.iter().fold(get, |call, (name, value)| call.header(name, value))).await
}

/// Begins a download and reads nothing of its body.
async fn begin(address: SocketAddr, secret: &str, id: &str) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(64 << 10)?;
    let mut stream = socket.connect(address).await?;
    let request = format!(
        "GET /api/v1/files/{id}/content HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await?;
    ensure!(&status == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&status));
    Ok(stream)
}

/// Reads the rest of a response; returns its body.
async fn rest(mut stream: TcpStream) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").context("no head")?;
    Ok(answer.split_off(head + 4))
}

#[tokio::test]
async fn documents_are_downloaded_whole_and_in_parts_with_any_name() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let bytes = content(1_000_000);
    for (name, encoded) in [
        ("out/plain.csv", "plain.csv"),
        ("it's \"quoted\"; x=1.csv", "it%27s%20%22quoted%22%3B%20x%3D1.csv"),
        ("שלום\u{202e}.csv", "%D7%A9%D7%9C%D7%95%D7%9D%E2%80%AE.csv"),
        ("🦀/🦀.csv", "%F0%9F%A6%80.csv"),
    ] {
        let id = promote(&gateway, name, &bytes).await?;
        let path = format!("/files/{id}/content");
        let whole = download(&gateway, &path, &[]).await?;
        ensure!(whole.status == 200 && whole.body == bytes, "{name}: {}", whole.status);
        ensure!(whole.header("content-type") == "application/octet-stream", "clients decode no other type");
        let disposition = whole.header("content-disposition");
        ensure!(disposition.ends_with(&format!("; filename*=UTF-8''{encoded}")), "{name}: {disposition}");
        let etag = whole.header("etag");
        let part = download(&gateway, &path, &[("range", "bytes=999990-"), ("if-range", etag)]).await?;
        ensure!(part.status == 206 && part.body == bytes[999_990..], "{name}: {}", part.status);
        ensure!(part.header("content-range") == "bytes 999990-999999/1000000", "{name}");
        let known = download(&gateway, &path, &[("if-none-match", etag)]).await?;
        ensure!(known.status == 304 && known.body.is_empty(), "{name}: {}", known.status);
    }
    Ok(())
}

#[tokio::test]
async fn paused_download_takes_memory_only_and_survives_the_deletion() -> Result<()> {
    let mut instance = Instance::new("[limits]\nmax_in_flight = 2\n")?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    let gateway = TestGateway::of(instance).await?;
    let bytes = content(LARGE);
    let id = promote(&gateway, "large", &bytes).await?;
    let mut unread = Vec::new();
    for _ in 0..8 {
        unread.push(begin(gateway.server.address(), &gateway.inference.secret, &id).await?);
    }
    let scrape = Scrape::take(metrics).await?;
    ensure!(scrape.value("tollgate_requests_in_flight") == 0, "a paused download takes a place");
    ensure!(scrape.value("tollgate_body_memory_bytes") == 8 << 20, "a paused download holds 1 MiB");
    let deleted = gateway.server.send(&call(&gateway, Method::DELETE, &format!("/files/{id}"))).await?;
    ensure!(deleted.status == 200 && gateway.instance.document_blobs()?.is_empty(), "{}", deleted.status);
    ensure!(rest(unread.pop().context("none")?).await? == bytes, "the open download lost its bytes");
    drop(unread);
    for attempt in 0.. {
        let held = Scrape::take(metrics).await?.value("tollgate_body_memory_bytes");
        if held == 0 {
            break;
        }
        ensure!(attempt < 1_000, "{held} bytes of killed downloads are not released");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn damaged_document_is_noticed_by_client_and_operator() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let bytes = content(LARGE);
    let id = promote(&gateway, "large", &bytes).await?;
    let blobs = gateway.instance.document_blobs()?;
    let blob = blobs.first().context("no blob")?;
    let mut damaged = bytes.clone();
    damaged[LARGE - 1] ^= 1;
    std::fs::write(blob, &damaged)?;
    let arrived = rest(begin(gateway.server.address(), &gateway.inference.secret, &id).await?).await?;
    ensure!(arrived.len() < LARGE && bytes.starts_with(&arrived), "{} bytes arrived", arrived.len());
    ensure!(download(&gateway, &format!("/files/{id}/content"), &[]).await.is_err(), "a client package notices");
    let output = gateway.server.output();
    ensure!(output.contains("stored bytes are damaged"), "not logged: {output}");

    for (problem, found) in [("truncated", Some(&bytes[..LARGE / 2])), ("missing", None)] {
        match found {
            Some(found) => std::fs::write(blob, found)?,
            None => std::fs::remove_file(blob)?,
        }
        let reply = download(&gateway, &format!("/files/{id}/content"), &[]).await?;
        reply.envelope(500).with_context(|| problem.to_owned())?;
        ensure!(gateway.server.output().contains(&id), "{problem}: the document is not named in the log");
    }
    gateway.server.ensure_healthy().await
}
