//! Decisions from every kind of client to every kind of provider, compared with a bare proxy that forwards one body
//! unchanged to one provider.

use anyhow::{Context as _, Result};

use super::bench::Bench;
use crate::http::{self, call_once};
use crate::load::{Requests, Rounds, Run, Target, column, side_by_side};
use crate::process::Helper;
use crate::report::Figure;
use crate::statistics::difference;
use crate::wires::{INBOUND, OUTBOUND};

/// Measures every pair at 64 connections for throughput and at one for latency. Each of the many pairs gets a quarter
/// of the usual time per round.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let proxy = Helper::start(&["proxy", "--upstream", &bench.upstream.address.to_string()]).await?;
    let mut targets = vec![Target {
        name: "bare proxy",
        address: proxy.address,
        pid: proxy.pid()?,
        requests: request(bench, "/v1/systemone", &INBOUND[0].body(OUTBOUND[0].model)),
    }];
    let mut pairs = Vec::new();
    for inbound in INBOUND {
        for outbound in OUTBOUND {
            let pair = format!("{} -> {}", inbound.name, outbound.wire);
            let target = Target {
                name: "gateway",
                address: bench.gateway.address,
                pid: bench.gateway.pid()?,
                requests: request(bench, inbound.path, &inbound.body(outbound.model)),
            };
            call_once(target.address, target.requests.next()).await.with_context(|| pair.clone())?;
            targets.push(target);
            pairs.push(pair);
        }
    }
    let duration = bench.duration / 4;
    let crowded = side_by_side(&targets, 64, bench.rounds, duration).await?;
    let alone = side_by_side(&targets, 1, bench.rounds, duration).await?;
    Ok(figures(&pairs, &crowded, &alone))
}

fn request(bench: &Bench, path: &str, body: &str) -> Requests {
    Requests::repeat(http::request("POST", path, &bench.gateway.inference_key, Some(body.as_bytes())))
}

/// `runs[0]` are the bare proxy's, `runs[1..]` the pairs'.
fn figures(pairs: &[String], crowded: &Rounds, alone: &Rounds) -> Vec<Figure> {
    let throughput = pairs.iter().zip(&crowded[1..]).map(|(pair, runs)| {
        let per_second = |runs: &[Run]| column(runs, |run| run.per_second);
        let proxy = per_second(&crowded[0]);
        Figure::compared(format!("{pair}, c=64"), "1/s", &per_second(runs), ("bare proxy", &proxy))
    });
    let latency = pairs.iter().zip(&alone[1..]).map(|(pair, runs)| {
        let p50 = |runs: &[Run]| column(runs, |run| run.p50_us);
        let added = difference(&p50(runs), &p50(&alone[0]));
        Figure::single(format!("{pair}, c=1, p50 added to the bare proxy"), "us", added)
    });
    throughput.chain(latency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(per_second: f64, p50_us: f64) -> Run {
        Run { per_second, p50_us, p99_us: 0.0, max_us: 0.0, cpu_us: 0.0 }
    }

    #[test]
    fn figures_compare_each_pair_with_the_proxy_of_the_same_round() {
        let crowded = vec![vec![run(100.0, 0.0), run(50.0, 0.0)], vec![run(40.0, 0.0), run(20.0, 0.0)]];
        let alone = vec![vec![run(0.0, 10.0), run(0.0, 30.0)], vec![run(0.0, 110.0), run(0.0, 130.0)]];
        let figures = figures(&["a -> b".to_owned()], &crowded, &alone);
        assert_eq!(figures.len(), 2);
        assert!((figures[0].ratio.unwrap() - 0.4).abs() < 1e-9, "{:?}", figures[0]);
        assert!((figures[1].ours - 100.0).abs() < 1e-9, "{:?}", figures[1]);
    }
}
