//! Start-up time on an existing database, and idle memory.

use std::time::Duration;

use anyhow::Result;

use super::bench::{Bench, mib};
use crate::process::rss_kib;
use crate::report::{Bound, Figure};
use crate::statistics::median;

/// Starts the gateway several times and leaves it running.
pub async fn measure(bench: &mut Bench) -> Result<Vec<Figure>> {
    // The first start imports the catalogue; only later starts count.
    bench.gateway.start().await?;
    let mut starts = Vec::new();
    for _ in 0..bench.rounds {
        bench.gateway.stop().await?;
        starts.push(bench.gateway.start().await?.as_secs_f64() * 1e3);
    }
    tokio::time::sleep(Duration::from_secs(if bench.quick { 1 } else { 5 })).await;
    let idle = mib(rss_kib(bench.gateway.pid()?)?);
    Ok(vec![
        Figure::single("start to the first authenticated 200, existing database", "ms", median(&starts))
            .with_bound(Bound::AtMost(300.0)),
        Figure::single("resident memory, idle", "MiB", idle).with_bound(Bound::AtMost(40.0)),
    ])
}
