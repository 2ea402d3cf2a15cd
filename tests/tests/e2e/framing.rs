//! Unusual but valid provider responses.

use std::time::Duration;

use anyhow::{Result, ensure};
use tollgate_tests::{Behaviour, Report, Upstream};

use crate::gateway::{ANSWER, TestGateway, body};

#[tokio::test]
async fn response_is_read_with_any_framing() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let beta = Upstream::start(Behaviour::status(500)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    let (first, second) = ANSWER.split_at(40);
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let cases = [
        ("by its length", format!("{json}content-length: {}\r\n\r\n{ANSWER}", ANSWER.len())),
        ("by the end of the connection", format!("{json}\r\n{ANSWER}")),
        ("in chunks", {
            format!(
                "{json}transfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x};ext=1\r\n{second}\r\n0\r\nx: y\r\n\r\n",
                first.len(),
                second.len()
            )
        }),
        ("after a word in between", format!("HTTP/1.1 103 Early Hints\r\n\r\n{json}\r\n{ANSWER}")),
        ("without a type", format!("HTTP/1.1 200 OK\r\n\r\n{ANSWER}")),
        ("by HTTP/1.0", format!("HTTP/1.0 200 OK\r\n\r\n{ANSWER}")),
        ("with blanks around", format!("{json}\r\n \r\n\t{ANSWER}\n\n")),
    ];
    let mut report = Report::default();
    for (name, bytes) in cases {
        alpha.behave(Behaviour::Raw(bytes.into_bytes()));
        let reply = gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?;
        report.case(
            name,
            reply.ok().and_then(|answer| {
                ensure!(answer["answers"]["refund"]["noul"] == 0.97, "{answer}");
                Ok(())
            }),
        );
    }
    report.finish()
}

#[tokio::test]
async fn closed_idle_connection_is_not_a_provider_failure() -> Result<()> {
    let closing = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
    let alpha = Upstream::start(Behaviour::Raw(closing.into_bytes())).await?;
    let beta = Upstream::start(Behaviour::status(500)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    for _ in 0..30 {
        gateway.decide(body("acme/alone")).await?;
        // The close needs time to arrive.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ensure!(alpha.take_requests().len() == 30, "a request was sent twice");
    Ok(())
}

#[tokio::test]
async fn recovered_provider_is_used_again() -> Result<()> {
    let alpha = Upstream::start(Behaviour::Reset).await?;
    let beta = Upstream::start(Behaviour::json(ANSWER)).await?;
    let gateway = TestGateway::with_providers(&alpha, &beta, 5_000).await?;
    ensure!(gateway.decide(body("acme/pair")).await?["provider"] == "Beta AI");
    alpha.behave(Behaviour::json(ANSWER));
    ensure!(gateway.decide(body("acme/pair")).await?["provider"] == "Alpha AI");
    // The order of the configuration applies, not the order of success.
    ensure!(gateway.decide(body("acme/pair:floor")).await?["provider"] == "Alpha AI");
    Ok(())
}
