//! Clients that do not read their answers.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tollgate_tests::{Behaviour, Instance, Upstream, decisions, free_address};

use crate::gateway::{TestGateway, body, providers_toml};
use crate::metrics::Scrape;

const BODY: &str = r#"{"model":"acme/alone","questions":{"text":"What is in it?"},"state":"s"}"#;
/// More than both ends of a connection buffer.
const ANSWER_BYTES: usize = 6 << 20;
const PLACES: usize = 4;

/// Sends a request and reads nothing.
async fn send_without_reading(address: SocketAddr, secret: &str) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(64 << 10)?;
    let mut stream = socket.connect(address).await?;
    let request = format!(
        "POST /api/alpha/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

#[tokio::test]
async fn unread_answers_take_places_and_memory_until_their_clients_leave() -> Result<()> {
    let answer = format!(
        r#"{{"model":"judge-1.0","answers":{{"text":"{}"}},"usage":{{"input_tokens":1,"output_tokens":1}}}}"#,
        "x".repeat(ANSWER_BYTES)
    );
    let alpha = Upstream::start(Behaviour::json(answer)).await?;
    let providers = providers_toml(&alpha.base_url(), &alpha.base_url(), 60_000);
    let mut instance = Instance::new(&format!("[limits]\nmax_in_flight = {PLACES}\n{providers}"))?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    let gateway = TestGateway::of(instance).await?;
    // A workspace gets half of the places.
    let other = gateway.instance.workspace("other").await?;
    let other = gateway.instance.key(&["--name", "other", "--workspace", &other]).await?;
    let mut unread = Vec::new();
    for number in 0..PLACES {
        let secret = if number % 2 == 0 { &gateway.inference.secret } else { &other.secret };
        unread.push(send_without_reading(gateway.server.address(), secret).await?);
    }
    // All of them are answered.
    let labels = [("route", "/api/alpha/decisions"), ("method", "POST"), ("status", "200")];
    let answered = i64::try_from(PLACES)?;
    for attempt in 0.. {
        let scrape = Scrape::take(metrics).await?;
        if scrape.of("tollgate_http_requests_total", &labels) == answered {
            ensure!(scrape.value("tollgate_requests_in_flight") == answered, "an unread answer takes no place");
            let bytes = usize::try_from(scrape.value("tollgate_body_memory_bytes"))?;
            ensure!(bytes >= PLACES * ANSWER_BYTES, "unread answers take {bytes} bytes of the budget");
            break;
        }
        ensure!(attempt < 1_000, "not answered: {}", gateway.server.output());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let rejected = gateway.server.send(&decisions(&gateway.inference.secret, body("acme/alone"))).await?;
    ensure!(rejected.status == 503, "{}", rejected.status);
    drop(unread);
    for attempt in 0.. {
        let scrape = Scrape::take(metrics).await?;
        let held = scrape.value("tollgate_body_memory_bytes");
        if scrape.value("tollgate_requests_in_flight") == 0 && held == 0 {
            break;
        }
        ensure!(attempt < 1_000, "{held} bytes are not released");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    ensure!(gateway.server.decide(&gateway.inference.secret, BODY).await?.status == 200, "the places are free again");
    gateway.server.stop().await
}
