//! Load: requests over and over, on a number of keep-alive connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::task::JoinSet;

use crate::clock::now;
use crate::http::Connection;
use crate::process;
use crate::statistics::{figure, percentile_us};

/// A server and what is sent to it.
#[derive(Clone)]
pub struct Target {
    /// What the report calls it.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// The whole requests, which are sent in turn.
    pub requests: Requests,
}

/// Whole requests that all connections send in turn, for as long as the load goes on.
#[derive(Clone)]
pub struct Requests {
    all: Arc<[Vec<u8>]>,
    next: Arc<AtomicUsize>,
}

impl Requests {
    /// At least one.
    pub fn new(all: Vec<Vec<u8>>) -> Self {
        assert!(!all.is_empty(), "a load needs a request");
        Self { all: all.into(), next: Arc::default() }
    }

    /// The same request over and over.
    pub fn one(request: Vec<u8>) -> Self {
        Self::new(vec![request])
    }

    /// How many were sent.
    pub fn sent(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// The next one.
    pub fn next(&self) -> &[u8] {
        &self.all[self.next.fetch_add(1, Ordering::Relaxed) % self.all.len()]
    }
}

/// What one run of load saw.
pub struct Run {
    /// Answers a second.
    pub per_second: f64,
    /// Half of the answers came within this.
    pub p50_us: f64,
    /// 99 of 100 answers came within this.
    pub p99_us: f64,
    /// The longest answer took this.
    pub max_us: f64,
    /// Processor time that the server used for an answer.
    pub cpu_us: f64,
}

/// Sends requests for `duration` on `connections` connections. Any answer but 200 ends the benchmark: an error is
/// answered faster than a request, so a figure with errors in it means nothing.
pub async fn drive(target: &Target, connections: usize, duration: Duration) -> Result<Run> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(target.address).await?);
    }
    let cpu_before = process::cpu_time(target.pid)?;
    let began = now();
    let mut tasks = JoinSet::new();
    for mut connection in open {
        let requests = target.requests.clone();
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(16 * 1024);
            let mut sent = now();
            while sent.duration_since(began) < duration {
                let status = connection.exchange(requests.next()).await?;
                if status != 200 {
                    bail!("an answer was {status}");
                }
                let answered = now();
                latencies.push(answered.duration_since(sent));
                sent = answered;
            }
            Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(finished) = tasks.join_next().await {
        latencies.extend(finished??);
    }
    let took = began.elapsed().as_secs_f64();
    let cpu = process::cpu_time(target.pid)?.saturating_sub(cpu_before).as_secs_f64();
    latencies.sort_unstable();
    let answers = figure(latencies.len() as u64);
    Ok(Run {
        per_second: answers / took,
        p50_us: percentile_us(&latencies, 50),
        p99_us: percentile_us(&latencies, 99),
        max_us: percentile_us(&latencies, 100),
        cpu_us: cpu * 1e6 / answers,
    })
}

/// Runs of several targets, round by round: `runs[target][round]`.
pub type Rounds = Vec<Vec<Run>>;

/// Warms every target up, then drives all of them in every round, beginning with another one each time.
pub async fn side_by_side(targets: &[Target], connections: usize, rounds: usize, duration: Duration) -> Result<Rounds> {
    for target in targets {
        drive(target, connections, duration / 2).await?;
    }
    let mut runs: Rounds = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..targets.len() {
            let index = (round + turn) % targets.len();
            runs[index].push(drive(&targets[index], connections, duration).await?);
        }
    }
    Ok(runs)
}

/// One column of a target's runs.
pub fn column(runs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}
