//! Authenticated catalogue reads, compared with a bare handler that returns the same bytes without authentication.

use anyhow::Result;

use super::bench::Bench;
use crate::http::{self, call_once};
use crate::load::{Requests, Target, column, side_by_side};
use crate::process::Helper;
use crate::report::{Bound, Figure};
use crate::wires::OUTBOUND;

/// Measures both reads at 64 connections.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = read(bench, "model by slug", &format!("/api/v1/model/{}", OUTBOUND[0].model)).await?;
    figures.extend(read(bench, "model count", "/api/v1/models/count?output_modalities=decisions").await?);
    Ok(figures)
}

async fn read(bench: &Bench, name: &str, path: &str) -> Result<Vec<Figure>> {
    let request = http::request("GET", path, &bench.gateway.inference_key, None);
    let requests = Requests::repeat(request.clone());
    let body = bench.gateway.folder().join("fixed-body.json");
    tokio::fs::write(&body, call_once(bench.gateway.address, &request).await?).await?;
    let fixed = Helper::start(&["fixed", "--body", &body.to_string_lossy()]).await?;
    let targets = [
        Target {
            name: "gateway",
            address: bench.gateway.address,
            pid: bench.gateway.pid()?,
            requests: requests.clone(),
        },
        Target { name: "bare handler", address: fixed.address, pid: fixed.pid()?, requests },
    ];
    let runs = side_by_side(&targets, 64, bench.rounds, bench.duration).await?;
    let beside = |what: &str, unit, value: fn(&crate::load::Run) -> f64| {
        Figure::compared(
            format!("{name}, c=64{what}"),
            unit,
            &column(&runs[0], value),
            (targets[1].name, &column(&runs[1], value)),
        )
    };
    Ok(vec![
        beside("", "1/s", |run| run.per_second).with_bound(Bound::RatioAtLeast(0.8)),
        beside(", processor time an answer", "us", |run| run.cpu_us),
    ])
}
