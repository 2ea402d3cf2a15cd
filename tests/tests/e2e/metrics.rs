//! The metrics listener.

mod openmetrics;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use http::Method;
use tollgate_tests::{Behaviour, Call, Instance, Upstream, decisions, free_address};

use self::openmetrics::Series;
use crate::gateway::{ANSWER, TestGateway, body, providers_toml};

/// The samples of a scrape.
#[derive(Debug)]
pub struct Scrape(BTreeMap<Series, String>);

impl Scrape {
    /// Reads `/metrics`.
    pub async fn take(from: SocketAddr) -> Result<Self> {
        let reply = Call::get("/metrics").send(from).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        ensure!(reply.header("content-type") == "application/openmetrics-text; version=1.0.0; charset=utf-8");
        openmetrics::read(&reply.text()).map(Self)
    }

    /// Returns the value of a series without labels.
    pub fn value(&self, name: &str) -> i64 {
        self.of(name, &[])
    }

    /// Returns the value of a series with exactly these labels; -1 if it is missing or not an integer.
    pub fn of(&self, name: &str, labels: &[(&str, &str)]) -> i64 {
        self.text(name, labels).and_then(|value| value.parse().ok()).unwrap_or(-1)
    }

    /// Returns the literal value of a series.
    fn text(&self, name: &str, labels: &[(&str, &str)]) -> Option<&str> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.0.get(&(name.to_owned(), labels)).map(String::as_str)
    }

    /// Returns the sum over all series of a name.
    fn sum(&self, name: &str) -> i64 {
        self.0.iter().filter(|((other, _), _)| other == name).filter_map(|(_, value)| value.parse::<i64>().ok()).sum()
    }

    fn series(&self) -> Vec<&Series> {
        self.0.keys().collect()
    }
}

async fn measured(alpha: &Upstream, beta: &Upstream, limits: &str) -> Result<(TestGateway, SocketAddr)> {
    let mut instance =
        Instance::new(&format!("{limits}{}", providers_toml(&alpha.base_url(), &beta.base_url(), 5_000)))?;
    let metrics = free_address()?;
    instance.set_env("TOLLGATE__SERVER__METRICS_LISTEN", metrics.to_string());
    instance.set_env("ALPHA_API_KEY", "alpha-secret-0001");
    Ok((TestGateway::of(instance).await?, metrics))
}

/// Returns the names in the table of metrics of the documentation.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../docs/monitoring.md");
    let table =
        page.split_once("\n## Metrics\n").map_or("", |(_, rest)| rest).split("\n## ").next().unwrap_or_default();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | ").map(|(cell, _)| cell));
    cells.flat_map(|cell| cell.split('`')).filter(|name| name.contains('_')).map(str::to_owned).collect()
}

#[tokio::test]
async fn documented_metrics_are_those_of_the_listener() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    // Some metrics exist only with retention, or with a server of rate limits.
    let valkey = test_servers::Valkey::start()?;
    let sections = format!("[retention]\nusage_days = 400\n[rate_limits]\nurl = \"{}\"\n", valkey.url());
    let (gateway, metrics) = measured(&alpha, &alpha, &sections).await?;
    gateway.decide(body("acme/alone")).await?;
    let reply = Call::get("/metrics").send(metrics).await?;
    let text = reply.text();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let exposed: BTreeSet<String> = families
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect();
    ensure!(exposed.len() > 50, "{exposed:?}");
    let documented = documented();
    let differing: Vec<_> = exposed.symmetric_difference(&documented).collect();
    ensure!(differing.is_empty(), "in one of /metrics and docs/monitoring.md: {differing:?}");
    gateway.server.stop().await
}

#[tokio::test]
async fn counts_are_exact() -> Result<()> {
    let (alpha, beta) =
        (Upstream::start(Behaviour::json(ANSWER)).await?, Upstream::start(Behaviour::json(ANSWER)).await?);
    let (gateway, metrics) = measured(&alpha, &beta, "").await?;
    for _ in 0..3 {
        gateway.decide(body("acme/alone")).await?;
    }
    alpha.behave(Behaviour::status(500));
    gateway.decide(body("acme/pair")).await?;
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(502)?;
    gateway.server.decide(&gateway.inference.secret, "{").await?.envelope(400)?;
    gateway.server.decide("sk-nobody", body("acme/alone")).await?.envelope(401)?;
    for _ in 0..4 {
        gateway.server.send(&Call::get("/api/v1/models/count").key(&gateway.inference.secret)).await?.ok()?;
    }
    gateway.server.send(&Call::get("/nothing/here")).await?.envelope(404)?;
    gateway.server.send(&Call::get("/metrics")).await?.envelope(404)?;

    let scrape = Scrape::take(metrics).await?;
    let requests = |route, method, status| {
        scrape.of("tollgate_http_requests_total", &[("route", route), ("method", method), ("status", status)])
    };
    let decisions = "/api/alpha/decisions";
    let counted = ["200", "400", "401", "502"].map(|status| requests(decisions, "POST", status));
    ensure!(counted == [4, 1, 1, 1], "{counted:?}");
    ensure!((requests("/models/count", "GET", "200"), requests("none", "GET", "404")) == (4, 2));
    let latency = |route| scrape.of("tollgate_http_request_duration_seconds_count", &[("route", route)]);
    ensure!((latency(decisions), latency("/models/count"), latency("none")) == (7, 4, 2));
    ensure!(scrape.of("tollgate_decisions_total", &[("outcome", "completed")]) == 4);
    ensure!(scrape.of("tollgate_decisions_total", &[("outcome", "failed")]) == 1);
    ensure!(scrape.value("tollgate_gateway_overhead_seconds_count") == 5);
    let attempts =
        |provider, outcome| scrape.of("tollgate_attempts_total", &[("provider", provider), ("outcome", outcome)]);
    ensure!((attempts("alpha", "completed"), attempts("alpha", "http_error")) == (3, 2));
    ensure!((attempts("beta", "completed"), scrape.sum("tollgate_attempts_total")) == (1, 6));
    let tokens =
        |provider, direction| scrape.of("tollgate_tokens_total", &[("provider", provider), ("direction", direction)]);
    ensure!((tokens("alpha", "input"), tokens("alpha", "output")) == (3 * 429, 3 * 31));
    ensure!((tokens("beta", "input"), tokens("beta", "output")) == (429, 31));
    // 429 tokens at 4.2e-8 USD.
    ensure!(scrape.text("tollgate_spend_usd_total", &[]) == Some("0.000072072"));
    ensure!(scrape.text("tollgate_attempt_cost_usd_total", &[("provider", "alpha")]) == Some("0.000054054"));
    ensure!(scrape.value("tollgate_requests_in_flight") == 0);
    ensure!(scrape.value("tollgate_requests_in_flight_limit") == 4_096);
    ensure!(scrape.sum("tollgate_rate_limit_rejections_total") == 0);
    let keys = |result| scrape.of("tollgate_cache_lookups_total", &[("cache", "keys"), ("result", result)]);
    // Ten requests had a valid key; the first lookup, and those after a change, are misses.
    ensure!(keys("hit") + keys("miss") == 10 && keys("miss") >= 1, "{} {}", keys("hit"), keys("miss"));
    ensure!(scrape.sum("tollgate_database_connections_limit") >= 2);
    ensure!(scrape.sum("tollgate_build_info") == 1);
    Ok(())
}

#[tokio::test]
async fn metrics_show_rate_limits_and_throttled_endpoints() -> Result<()> {
    let alpha = Upstream::start(Behaviour::status(401)).await?;
    let (gateway, metrics) = measured(&alpha, &alpha, "[limits]\nrequests_per_minute = 2\n").await?;
    let throttled = |scrape: &Scrape, endpoint, model| {
        let labels = [("endpoint", endpoint), ("provider", "alpha"), ("model", model)];
        scrape.of("tollgate_endpoint_throttled", &labels)
    };
    let before = Scrape::take(metrics).await?;
    ensure!(throttled(&before, "0", "acme/alone") == 0);
    gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(502)?;
    gateway.server.send(&Call::get("/api/v1/models/count").key(&gateway.inference.secret)).await?.ok()?;
    for _ in 0..3 {
        gateway.server.decide(&gateway.inference.secret, body("acme/alone")).await?.envelope(429)?;
    }
    let after = Scrape::take(metrics).await?;
    ensure!(throttled(&after, "0", "acme/alone") == 1 && throttled(&after, "1", "acme/pair") == 0);
    ensure!(after.sum("tollgate_endpoint_throttled_workspaces") == 0);
    ensure!(after.of("tollgate_rate_limit_rejections_total", &[("scope", "key"), ("unit", "requests")]) == 3);
    ensure!(after.sum("tollgate_rate_limit_rejections_total") == 3);
    Ok(())
}

#[tokio::test]
async fn client_disconnect_is_counted_as_499() -> Result<()> {
    let alpha = Upstream::start(Behaviour::HangBeforeHeaders).await?;
    let (gateway, metrics) = measured(&alpha, &alpha, "").await?;
    let (call, address) = (decisions(&gateway.inference.secret, body("acme/alone")), gateway.server.address());
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { call.send(address).await });
    alpha.wait_for_request().await?;
    ensure!(Scrape::take(metrics).await?.value("tollgate_requests_in_flight") == 1);
    calls.shutdown().await;
    alpha.wait_until_abandoned(1).await?;
    let labels = [("route", "/api/alpha/decisions"), ("method", "POST"), ("status", "499")];
    for _ in 0..200 {
        let scrape = Scrape::take(metrics).await?;
        let settled = scrape.of("tollgate_decisions_total", &[("outcome", "cancelled")]) == 1;
        if settled && scrape.value("tollgate_requests_in_flight") == 0 {
            ensure!(scrape.of("tollgate_http_requests_total", &labels) == 1);
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("the place is not released, or the request is not counted")
}

#[tokio::test]
async fn clients_cannot_create_series() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let (gateway, metrics) = measured(&alpha, &alpha, "").await?;
    let secret = &gateway.inference.secret;
    let odd = |number: u32| {
        let path = format!("/api/v1/{number}/x\"}}y");
        let model = format!("acme/model-{number}");
        let method = Method::from_bytes(format!("M{number}").as_bytes()).context("no method")?;
        anyhow::Ok([
            Call::get(path.replace(['"', '}'], "_")),
            Call::get(format!("/api/v1/model/acme/model-{number}")).key(secret),
            decisions(secret, body(&model)).header("x-session-id", format!("session-{number}")),
            Call::new(method, "/api/v1/models/count").key(secret),
            Call::get("/api/v1/models/count").key(&format!("sk-{number}")),
        ])
    };
    let send = async |numbers: std::ops::Range<u32>| {
        for number in numbers {
            for call in odd(number)? {
                ensure!(gateway.server.send(&call).await?.status >= 400);
            }
        }
        Ok(())
    };
    send(0..1).await?;
    let before = Scrape::take(metrics).await?;
    send(1..201).await?;
    let after = Scrape::take(metrics).await?;
    ensure!(before.series() == after.series(), "series appeared: {:?}", {
        let known = before.series();
        after.series().into_iter().filter(|series| !known.contains(series)).collect::<Vec<_>>()
    });
    ensure!(after.sum("tollgate_http_requests_total") >= 1_005);
    Ok(())
}

#[tokio::test]
async fn metrics_are_served_at_configured_address_only() -> Result<()> {
    let alpha = Upstream::start(Behaviour::json(ANSWER)).await?;
    let (gateway, metrics) = measured(&alpha, &alpha, "").await?;
    ensure!(Call::get("/health/live").send(metrics).await?.json()?["status"] == "ok");
    ensure!(Call::new(Method::HEAD, "/metrics").send(metrics).await?.body.is_empty());
    ensure!(Call::post("/metrics").send(metrics).await?.status == 405);
    for path in ["/", "/health/ready", "/api/v1/models/count", "/docs"] {
        ensure!(Call::get(path).key(&gateway.management.secret).send(metrics).await?.status == 404, "{path}");
    }
    gateway.server.stop().await?;
    ensure!(Call::get("/metrics").send(metrics).await.is_err(), "it outlives the server");
    // A port in use fails the start.
    let taken = tokio::net::TcpListener::bind(metrics).await?;
    let said = gateway.instance.refused_serving().await?;
    ensure!(said.contains(&format!("cannot bind {metrics} for metrics")), "{said}");
    drop(taken);
    Ok(())
}
