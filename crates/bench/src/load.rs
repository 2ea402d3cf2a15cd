//! Load: repeated requests on a number of keep-alive connections.

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

/// A server under load and its requests.
#[derive(Clone)]
pub struct Target {
    /// The name in the report.
    pub name: &'static str,
    /// The address that the server listens on.
    pub address: SocketAddr,
    /// The process id of the server.
    pub pid: u32,
    /// The requests, sent in rotation.
    pub requests: Requests,
}

/// Requests that all connections send in rotation until the load ends.
#[derive(Clone)]
pub struct Requests {
    all: Arc<[Vec<u8>]>,
    next: Arc<AtomicUsize>,
}

impl Requests {
    /// Creates a rotation of at least one request.
    pub fn new(all: Vec<Vec<u8>>) -> Self {
        assert!(!all.is_empty(), "a load needs a request");
        Self { all: all.into(), next: Arc::default() }
    }

    /// Repeats one request.
    pub fn repeat(request: Vec<u8>) -> Self {
        Self::new(vec![request])
    }

    /// Returns the number of requests taken.
    pub fn sent(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the next request.
    pub fn next(&self) -> &[u8] {
        &self.all[self.next.fetch_add(1, Ordering::Relaxed) % self.all.len()]
    }
}

/// The figures of one run of load.
pub struct Run {
    /// Responses per second.
    pub per_second: f64,
    /// The median latency.
    pub p50_us: f64,
    /// The 99th percentile of the latency.
    pub p99_us: f64,
    /// The maximum latency.
    pub max_us: f64,
    /// Processor time of the server per response.
    pub cpu_us: f64,
}

/// Sends requests for `duration` on `connections` connections. Any status but 200 ends the benchmark: an error response
/// is cheaper than a real one, so it would improve the figures.
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

/// Runs of several targets: `runs[target][round]`.
pub type Rounds = Vec<Vec<Run>>;

/// Warms up every target, then drives all of them in each round. Each round begins with another target.
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

/// Returns one value of each run.
pub fn column(runs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}
