//! Decisions through the gateway, beside the provider itself and beside a bare proxy in front of it.

use std::sync::Arc;

use anyhow::Result;

use super::{Bench, mib};
use crate::http::{self, call_once};
use crate::load::{Rounds, Target, column, side_by_side};
use crate::process::{Helper, rss_kib};
use crate::report::{Bound, Figure};
use crate::statistics::difference;
use crate::wires::{INBOUND, OUTBOUND};

const GATEWAY: usize = 0;
const PROXY: usize = 1;
const DIRECT: usize = 2;

/// Measures at 64 connections for throughput and at one for latency.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let proxy = Helper::start(&["proxy", "--upstream", &bench.upstream.address.to_string()]).await?;
    // All three get the same, byte for byte.
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let target = |name, address, pid, path: &str| Target {
        name,
        address,
        pid,
        request: Arc::from(http::request("POST", path, &bench.gateway.inference_key, Some(body.as_bytes()))),
    };
    let targets = [
        target("gateway", bench.gateway.address, bench.gateway.pid()?, "/api/v1/api/alpha/decisions"),
        target("bare proxy", proxy.address, proxy.pid()?, "/v1/systemone"),
        target("direct", bench.upstream.address, bench.upstream.pid()?, "/v1/systemone"),
    ];
    for target in &targets {
        call_once(target.address, &target.request).await?;
    }
    let crowded = side_by_side(&targets, 64, bench.rounds, bench.duration).await?;
    let alone = side_by_side(&targets, 1, bench.rounds, bench.duration).await?;
    let mut figures = throughput(&targets, &crowded);
    figures.extend(latency(&targets, &alone));
    figures.push(Figure::alone("resident memory, after the load", "MiB", mib(rss_kib(bench.gateway.pid()?)?)));
    Ok(figures)
}

fn throughput(targets: &[Target], runs: &Rounds) -> Vec<Figure> {
    let per_second = |index: usize| column(&runs[index], |run| run.per_second);
    let cpu = |index: usize| column(&runs[index], |run| run.cpu_us);
    let beside = |name: &str, unit, value: &dyn Fn(usize) -> Vec<f64>, other: usize| {
        Figure::beside(name, unit, &value(GATEWAY), (targets[other].name, &value(other)))
    };
    vec![
        beside("Decisions, c=64", "1/s", &per_second, PROXY).bounded(Bound::RatioAtLeast(0.6)),
        beside("Decisions, c=64", "1/s", &per_second, DIRECT),
        beside("Decisions, c=64, processor time an answer", "us", &cpu, PROXY),
    ]
}

fn latency(targets: &[Target], runs: &Rounds) -> Vec<Figure> {
    let p50 = |index: usize| column(&runs[index], |run| run.p50_us);
    let p99 = |index: usize| column(&runs[index], |run| run.p99_us);
    let added = |name: &str, other: usize| Figure::alone(name, "us", difference(&p99(GATEWAY), &p99(other)));
    let mut figures = Vec::new();
    for other in [DIRECT, PROXY] {
        figures.push(Figure::beside("Decisions, c=1, p50", "us", &p50(GATEWAY), (targets[other].name, &p50(other))));
        figures.push(Figure::beside("Decisions, c=1, p99", "us", &p99(GATEWAY), (targets[other].name, &p99(other))));
    }
    figures.push(added("Decisions, c=1, p99 added to direct", DIRECT).bounded(Bound::AtMost(400.0)));
    figures.push(added("Decisions, c=1, p99 added to the bare proxy", PROXY));
    figures
}
