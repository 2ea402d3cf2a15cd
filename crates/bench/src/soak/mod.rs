//! The soak test: a steady load for a long time, and a check that no resource of the server grows.

mod growth;
mod pacing;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::clock::now;
use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Target, drive};
use crate::process::{Helper, descriptors, rss_kib, threads};
use crate::statistics::{figure, percentile_us};
use crate::wires::{INBOUND, OUTBOUND};
use growth::{Growth, Sample, find_growth};
use pacing::PacedLoad;

/// The connections of the measurement of the peak and of the load.
const CONNECTIONS: u32 = 64;
/// The duration of the warm-up, and of the measurement of the peak.
const PEAK_DURATION: Duration = Duration::from_secs(10);
/// The load's share of the peak rate.
const LOAD: f64 = 0.7;
/// The number of samples of a run, at one per minute at most.
const SAMPLES: u32 = 30;

/// How to soak.
#[derive(Args)]
pub struct Options {
    /// The binary to load.
    #[arg(long)]
    tollgate: PathBuf,
    /// The duration of the load, in minutes.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_080))]
    minutes: u32,
}

/// Measures the peak rate, loads the server, and fails if a resource grew.
pub async fn run(options: &Options) -> Result<()> {
    let upstream = Helper::start(&["upstream"]).await?;
    let mut gateway = Gateway::install(&options.tollgate, upstream.address).await?;
    gateway.start().await?;
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let request = http::request("POST", INBOUND[0].path, &gateway.inference_key, Some(body.as_bytes()));
    let requests = Requests::repeat(request);
    let target = Target { name: "soak", address: gateway.address, pid: gateway.pid()?, requests };
    call_once(target.address, target.requests.next()).await?;
    drive(&target, CONNECTIONS as usize, PEAK_DURATION).await?;
    let peak = drive(&target, CONNECTIONS as usize, PEAK_DURATION).await?.per_second;
    let rate = peak * LOAD;
    print(&format!("peak {peak:.0} answers/s; load {rate:.0} requests/s for {} min\n\n{HEAD}", options.minutes))?;

    let samples = observe(&target, rate, options.minutes).await?;
    gateway.stop().await?;
    let found = find_growth(&samples)?;
    print(&verdict(&found))?;
    ensure!(found.is_empty(), "{} resources of the server grew", found.len());
    Ok(())
}

/// Loads the server and prints a sample after each interval.
async fn observe(target: &Target, rate: f64, minutes: u32) -> Result<Vec<Sample>> {
    let duration = Duration::from_mins(minutes.into());
    let interval = (duration / SAMPLES).min(Duration::from_mins(1));
    let load = PacedLoad::start(target, CONNECTIONS, rate).await?;
    let began = now();
    let mut samples = Vec::new();
    while began.elapsed() + interval / 2 < duration {
        tokio::time::sleep(interval).await;
        let mut latencies = load.take_latencies()?;
        latencies.sort_unstable();
        let sample = Sample {
            at: began.elapsed(),
            rss_kib: rss_kib(target.pid).context("the server has ended")?,
            descriptors: descriptors(target.pid)?,
            threads: threads(target.pid)?,
            p99_us: percentile_us(&latencies, 99),
            per_second: figure(latencies.len() as u64) / interval.as_secs_f64(),
        };
        print(&row(&sample))?;
        samples.push(sample);
    }
    load.stop().await?;
    Ok(samples)
}

const HEAD: &str = "    time   answers/s    p99 us   RSS KiB   descriptors   threads\n";

fn row(sample: &Sample) -> String {
    let Sample { at, rss_kib, descriptors, threads, p99_us, per_second } = sample;
    let seconds = at.as_secs();
    format!(
        "{:>5}:{:02} {per_second:>11.0} {p99_us:>9.0} {rss_kib:>9} {descriptors:>13} {threads:>9}\n",
        seconds / 60,
        seconds % 60
    )
}

fn verdict(found: &[Growth]) -> String {
    if found.is_empty() {
        return "\nno growth between the first and the last third after the warm-up\n".to_owned();
    }
    let line = |growth: &Growth| format!("{growth}\n");
    format!("\n{}", found.iter().map(line).collect::<String>())
}

fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
