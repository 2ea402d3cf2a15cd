//! Decisions through the gateway, compared with the provider itself and with a bare proxy: for a key without limits and
//! for a key with a limit.

use anyhow::{Context as _, Result};

use super::bench::{Bench, mib};
use crate::http::{self, call_once};
use crate::load::{Requests, Rounds, Target, column, side_by_side};
use crate::process::{Helper, rss_kib};
use crate::report::{Bound, Figure};
use crate::statistics::difference;
use crate::wires::{INBOUND, OUTBOUND};

const UNLIMITED: usize = 0;
const LIMITED: usize = 1;
const PROXY: usize = 2;
const DIRECT: usize = 3;

/// Measures at 64 connections for throughput and at one for latency.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let proxy = Helper::start(&["proxy", "--upstream", &bench.upstream.address.to_string()]).await?;
    // All targets get identical bytes.
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let target = |name, address, pid, key: &str, path: &str| Target {
        name,
        address,
        pid,
        requests: Requests::repeat(http::request("POST", path, key, Some(body.as_bytes()))),
    };
    let (gateway, unlimited, limited) = (&bench.gateway, &bench.gateway.inference_key, limited_key(bench).await?);
    let path = "/api/v1/api/alpha/decisions";
    let targets = [
        target("nothing limited", gateway.address, gateway.pid()?, unlimited, path),
        target("one limited key", gateway.address, gateway.pid()?, &limited, path),
        target("bare proxy", proxy.address, proxy.pid()?, unlimited, "/v1/systemone"),
        target("direct", bench.upstream.address, bench.upstream.pid()?, unlimited, "/v1/systemone"),
    ];
    for target in &targets {
        call_once(target.address, target.requests.next()).await.context(target.name)?;
    }
    let crowded = side_by_side(&targets, 64, bench.rounds, bench.duration).await?;
    let alone = side_by_side(&targets, 1, bench.rounds, bench.duration).await?;
    let mut figures = throughput(&targets, &crowded);
    figures.extend(latency(&targets, &alone));
    figures.push(
        Figure::single("resident memory, after the load", "MiB", mib(rss_kib(bench.gateway.pid()?)?))
            .with_bound(Bound::AtMost(64.0)),
    );
    Ok(figures)
}

/// Creates a key with a limit above the cost of the load.
async fn limited_key(bench: &Bench) -> Result<String> {
    let create = [
        "key",
        "create",
        "--allow-duplicate",
        "--name",
        "limited",
        "--limit-usd",
        "1000000",
        "--limit-reset",
        "monthly",
    ];
    let key = bench.gateway.command(&create).await?;
    key["key"].as_str().map(str::to_owned).context("key create gave no key")
}

fn throughput(targets: &[Target], runs: &Rounds) -> Vec<Figure> {
    let per_second = |index: usize| column(&runs[index], |run| run.per_second);
    let cpu = |index: usize| column(&runs[index], |run| run.cpu_us);
    let mut figures = Vec::new();
    for (index, rate, time) in [(UNLIMITED, 0.6, 2.2), (LIMITED, 0.55, 2.5)] {
        let beside = |what: &str, unit, value: &dyn Fn(usize) -> Vec<f64>, other: usize| {
            let name = format!("Decisions, {}, c=64{what}", targets[index].name);
            Figure::compared(name, unit, &value(index), (targets[other].name, &value(other)))
        };
        figures.push(beside("", "1/s", &per_second, PROXY).with_bound(Bound::RatioAtLeast(rate)));
        figures.push(beside("", "1/s", &per_second, DIRECT));
        figures.push(beside(", processor time an answer", "us", &cpu, PROXY).with_bound(Bound::RatioAtMost(time)));
    }
    figures
}

fn latency(targets: &[Target], runs: &Rounds) -> Vec<Figure> {
    let p50 = |index: usize| column(&runs[index], |run| run.p50_us);
    let p99 = |index: usize| column(&runs[index], |run| run.p99_us);
    let mut figures = Vec::new();
    for (index, added) in [(UNLIMITED, 400.0), (LIMITED, 600.0)] {
        let name = |what: &str| format!("Decisions, {}, c=1, {what}", targets[index].name);
        for other in [DIRECT, PROXY] {
            let beside = (targets[other].name, &*p50(other));
            figures.push(Figure::compared(name("p50"), "us", &p50(index), beside));
        }
        let beyond = |other: usize| difference(&p99(index), &p99(other));
        figures.push(Figure::compared(name("p99"), "us", &p99(index), (targets[DIRECT].name, &p99(DIRECT))));
        figures
            .push(Figure::single(name("p99 added to direct"), "us", beyond(DIRECT)).with_bound(Bound::AtMost(added)));
        figures.push(Figure::single(name("p99 added to the bare proxy"), "us", beyond(PROXY)));
    }
    figures
}
