//! Reads of the management API on one connection, with 100,000 keys in the database.

use anyhow::Result;

use super::bench::Bench;
use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Target, column, drive};
use crate::report::{Bound, Figure};
use crate::statistics::median;

/// Measures the first and the last page of keys, and the record of the caller's key.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let last = format!("/api/v1/keys?limit=100&offset={}", bench.keys.len().saturating_sub(100));
    let named = format!("/api/v1/keys/{}", bench.keys[bench.keys.len() / 2].hash);
    let management = bench.gateway.management_key.as_str();
    let of = (bench, &bench.gateway);
    Ok(vec![
        read(of, "the first page of keys", "/api/v1/keys?limit=100", management, 20.0).await?,
        read(of, "the last page of keys", &last, management, 20.0).await?,
        read(of, "one key by its hash", &named, management, 5.0).await?,
        read(of, "the caller's key", "/api/v1/key", &bench.gateway.inference_key, 5.0).await?,
    ])
}

/// Measures one read on one connection; `most` is in milliseconds.
pub(super) async fn read(
    (bench, gateway): (&Bench, &Gateway),
    name: &str,
    path: &str,
    key: &str,
    most: f64,
) -> Result<Figure> {
    let request = http::request("GET", path, key, None);
    call_once(gateway.address, &request).await?;
    let target =
        Target { name: "gateway", address: gateway.address, pid: gateway.pid()?, requests: Requests::repeat(request) };
    let mut runs = Vec::with_capacity(bench.rounds);
    for _ in 0..bench.rounds {
        runs.push(drive(&target, 1, bench.duration / 4).await?);
    }
    let millis = median(&column(&runs, |run| run.p50_us)) / 1_000.0;
    Ok(Figure::single(format!("{name}, c=1, median"), "ms", millis).with_bound(Bound::AtMost(most)))
}
