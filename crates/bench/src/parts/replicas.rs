//! Decisions by one, two and three replicas over PostgreSQL, compared with one process on SQLite.
//!
//! All processes share the machine's processors, so the rate hardly grows with the replicas: the processor time of an
//! answer tells what a replica on a machine of its own would serve.

use std::time::Duration;

use anyhow::{Context as _, Result};
use test_servers::Postgres;
use tokio::task::JoinSet;

use super::bench::{Bench, print_progress};
use crate::gateway::Gateway;
use crate::http::{self, call_once};
use crate::load::{Requests, Run, Target, column, drive, side_by_side};
use crate::process::cpu_time_with_children;
use crate::report::{Bound, Figure};
use crate::seed;
use crate::statistics::{difference, figure, median};
use crate::wires::{INBOUND, OUTBOUND};

const MOST_REPLICAS: usize = 3;
const CONNECTIONS: usize = 64;
/// Long enough for a figure from ticks of 10 ms.
const IDLE: Duration = Duration::from_secs(10);

/// The replicas with their database server.
struct Replicas<'a> {
    bench: &'a Bench,
    server: Postgres,
    gateways: Vec<Gateway>,
    /// The secret of a key that a workspace budget limits.
    budgeted_key: String,
}

/// The figures of one run of load over several replicas.
struct ClusterRun {
    per_second: f64,
    /// Processor time of the replicas per answer.
    gateway_us: f64,
    /// Processor time of the database per answer.
    database_us: f64,
    /// Draws and returns of each replica per second.
    draws_per_second: f64,
}

/// Measures with one replica, then with two, then with three.
pub async fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    let mut replicas = Replicas::start(bench).await?;
    let mut figures = at_rest(&replicas).await?;
    figures.extend(latency(bench, &replicas).await?);
    for count in 1..=MOST_REPLICAS {
        print_progress(&format!("{count} of {MOST_REPLICAS} replicas"));
        replicas.grow_to(count).await?;
        figures.extend(throughput(bench, &replicas).await?);
    }
    figures.extend(shared_budget(bench, &replicas).await?);
    replicas.stop().await?;
    Ok(figures)
}

impl<'a> Replicas<'a> {
    async fn start(bench: &'a Bench) -> Result<Self> {
        print_progress("PostgreSQL with keys and records");
        let server = Postgres::start_durable()?;
        let url = server.create_database()?;
        let mut first = Gateway::install_on(url.clone(), &bench.tollgate, bench.upstream.address).await?;
        seed::keys(&url, first.workspace_id.parse().context("the workspace's id")?, bench.replica_keys).await?;
        let budgeted_key = budgeted_key(&first).await?;
        first.start().await?;
        let replicas = Self { bench, server, gateways: vec![first], budgeted_key };
        replicas.call_each().await?;
        replicas.add_records().await?;
        Ok(replicas)
    }

    async fn grow_to(&mut self, count: usize) -> Result<()> {
        while self.gateways.len() < count {
            let mut replica = self.gateways[0].replica()?;
            replica.start().await?;
            self.gateways.push(replica);
        }
        self.call_each().await
    }

    async fn stop(self) -> Result<()> {
        for mut gateway in self.gateways {
            gateway.stop().await?;
        }
        Ok(())
    }

    fn database_url(&self) -> &str {
        self.gateways[0].database_url()
    }

    /// Sends one request to each replica, so that a wrong answer is reported before the load.
    async fn call_each(&self) -> Result<()> {
        for target in self.targets(&self.gateways[0].inference_key)? {
            call_once(target.address, target.requests.next()).await.context("a replica")?;
        }
        Ok(())
    }

    fn targets(&self, key: &str) -> Result<Vec<Target>> {
        self.gateways.iter().map(|gateway| target("replica", gateway, key)).collect()
    }

    /// Copies the first record until the table has the configured number of them.
    async fn add_records(&self) -> Result<()> {
        if self.bench.records == 0 {
            return Ok(());
        }
        // The record is folded within a tick of the journal.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let names = "SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) \
                     FROM information_schema.columns WHERE table_name = 'usage_records' AND column_name <> 'id'";
        let columns = self.server.query(self.database_url(), names)?;
        // The ids of copies begin with zeros: no real id does.
        let copy = format!(
            "INSERT INTO usage_records (id, {columns}) \
             SELECT decode(lpad(to_hex(number), 32, '0'), 'hex'), {columns} \
             FROM (SELECT * FROM usage_records LIMIT 1) AS record, generate_series(1, {}) AS number",
            self.bench.records
        );
        self.server.query(self.database_url(), &copy)?;
        self.server.query(self.database_url(), "VACUUM ANALYZE usage_records").map(drop)
    }

    /// Drives all replicas at once; the connections are spread over them.
    async fn drive(&self, key: &str) -> Result<ClusterRun> {
        let targets = self.targets(key)?;
        let (count, duration) = (targets.len(), self.bench.duration);
        let postgres = self.server.process_id()?;
        let (cpu, draws) = (cpu_time_with_children(postgres)?, self.draws()?);
        let mut tasks = JoinSet::new();
        for target in targets {
            tasks.spawn(async move { drive(&target, CONNECTIONS / count, duration).await });
        }
        let mut runs: Vec<Run> = Vec::new();
        while let Some(run) = tasks.join_next().await {
            runs.push(run??);
        }
        let (cpu, draws) = (cpu_time_with_children(postgres)?.saturating_sub(cpu), self.draws()?.saturating_sub(draws));
        let per_second: f64 = runs.iter().map(|run| run.per_second).sum();
        let gateway_us: f64 = runs.iter().map(|run| run.cpu_us * run.per_second).sum();
        let seconds = duration.as_secs_f64();
        Ok(ClusterRun {
            per_second,
            gateway_us: gateway_us / per_second,
            database_us: cpu.as_secs_f64() * 1e6 / (per_second * seconds),
            draws_per_second: figure(draws) / seconds / figure(count as u64),
        })
    }

    /// Returns the number of all draws and returns until now.
    fn draws(&self) -> Result<u64> {
        let sum = self.server.query(self.database_url(), "SELECT COALESCE(SUM(number), 0) FROM budget_processes")?;
        sum.parse().with_context(|| format!("the number of draws is {sum:?}"))
    }
}

fn target(name: &'static str, gateway: &Gateway, key: &str) -> Result<Target> {
    let body = INBOUND[0].body(OUTBOUND[0].model);
    let request = http::request("POST", "/api/v1/api/alpha/decisions", key, Some(body.as_bytes()));
    Ok(Target { name, address: gateway.address, pid: gateway.pid()?, requests: Requests::repeat(request) })
}

/// Creates a key in a workspace with a budget above the cost of the load.
async fn budgeted_key(gateway: &Gateway) -> Result<String> {
    let text = |made: &serde_json::Value, name: &str| {
        made[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {made}"))
    };
    let workspace =
        text(&gateway.command(&["workspace", "create", "--allow-duplicate", "--name", "budgeted"]).await?, "id")?;
    gateway.command(&["workspace", "budget", "--workspace", &workspace, "--monthly", "1000000"]).await?;
    text(&gateway.command(&["key", "create", "--name", "budgeted", "--workspace", &workspace]).await?, "key")
}

/// Measures the database under one idle replica, and the size of a record.
async fn at_rest(replicas: &Replicas<'_>) -> Result<Vec<Figure>> {
    let postgres = replicas.server.process_id()?;
    let before = cpu_time_with_children(postgres)?;
    tokio::time::sleep(IDLE).await;
    let used = cpu_time_with_children(postgres)?.saturating_sub(before);
    let idle = used.as_secs_f64() * 1e3 / IDLE.as_secs_f64();
    let mut figures = vec![Figure::single("PostgreSQL's processor time for an idle replica, a second", "ms", idle)];
    if replicas.bench.records > 0 {
        let size = "SELECT (SELECT SUM(pg_total_relation_size(relid)) FROM pg_partition_tree('usage_records'))::bigint \
                    / (SELECT COUNT(*) FROM usage_records)";
        let size = replicas.server.query(replicas.database_url(), size)?;
        let size: u64 = size.parse().with_context(|| format!("the size of a record is {size:?}"))?;
        figures.push(Figure::single("PostgreSQL's disk for a usage record, with indexes", "bytes", figure(size)));
    }
    Ok(figures)
}

/// Compares the latency at one connection.
async fn latency(bench: &Bench, replicas: &Replicas<'_>) -> Result<Vec<Figure>> {
    let (sqlite, replica) = (&bench.gateway, &replicas.gateways[0]);
    let targets =
        [target("a replica", replica, &replica.inference_key)?, target("SQLite", sqlite, &sqlite.inference_key)?];
    let alone = side_by_side(&targets, 1, bench.rounds, bench.duration).await?;
    let p50 = |index: usize| column(&alone[index], |run| run.p50_us);
    let p99 = |index: usize| column(&alone[index], |run| run.p99_us);
    Ok(vec![
        Figure::compared("Decisions, one replica, c=1, p50", "us", &p50(0), ("SQLite", &p50(1))),
        Figure::compared("Decisions, one replica, c=1, p99", "us", &p99(0), ("SQLite", &p99(1))),
        Figure::single("Decisions, one replica, c=1, p99 added to SQLite", "us", difference(&p99(0), &p99(1))),
    ])
}

/// Compares the processor time of an answer with one process on SQLite, in alternating rounds.
async fn throughput(bench: &Bench, replicas: &Replicas<'_>) -> Result<Vec<Figure>> {
    let sqlite = target("SQLite", &bench.gateway, &bench.gateway.inference_key)?;
    let key = &replicas.gateways[0].inference_key;
    drive(&sqlite, CONNECTIONS, bench.duration / 2).await?;
    replicas.drive(key).await?;
    let (mut runs, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        runs.push(replicas.drive(key).await?);
        beside.push(drive(&sqlite, CONNECTIONS, bench.duration).await?);
    }
    let of = |value: fn(&ClusterRun) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let count = replicas.gateways.len();
    let replicas = if count == 1 { "1 replica".to_owned() } else { format!("{count} replicas") };
    let name = |what: &str| format!("Decisions, {replicas}, c=64{what}");
    let rates = column(&beside, |run| run.per_second);
    let times = column(&beside, |run| run.cpu_us);
    Ok(vec![
        Figure::compared(name(""), "1/s", &of(|run| run.per_second), ("SQLite", &rates)),
        Figure::compared(name(", processor time an answer"), "us", &of(|run| run.gateway_us), ("SQLite", &times))
            .with_bound(Bound::RatioAtMost(1.11)),
        Figure::single(name(", PostgreSQL's processor time an answer"), "us", median(&of(|run| run.database_us)))
            .with_bound(Bound::AtMost(10.0)),
    ])
}

/// Compares a workspace budget that all replicas share with requests that nothing limits.
async fn shared_budget(bench: &Bench, replicas: &Replicas<'_>) -> Result<Vec<Figure>> {
    print_progress("one workspace budget over all replicas");
    let (budgeted, unlimited) = (&replicas.budgeted_key, &replicas.gateways[0].inference_key);
    replicas.drive(budgeted).await?;
    let (mut hot, mut free) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        hot.push(replicas.drive(budgeted).await?);
        free.push(replicas.drive(unlimited).await?);
    }
    let of = |runs: &[ClusterRun], value: fn(&ClusterRun) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let rate: fn(&ClusterRun) -> f64 = |run| run.per_second;
    let name = |what: &str| format!("Decisions, {MOST_REPLICAS} replicas, one workspace budget, c=64{what}");
    Ok(vec![
        Figure::compared(name(""), "1/s", &of(&hot, rate), ("nothing limited", &of(&free, rate)))
            .with_bound(Bound::RatioAtLeast(0.8)),
        Figure::single(name(", draws and returns a replica"), "1/s", median(&of(&hot, |run| run.draws_per_second)))
            .with_bound(Bound::AtMost(2.0)),
        Figure::single(name(", PostgreSQL's processor time an answer"), "us", median(&of(&hot, |run| run.database_us))),
    ])
}
