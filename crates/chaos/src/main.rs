//! Replicas over PostgreSQL under load and faults, and a checker of the recorded history.
//!
//! `cargo xtask chaos` builds and runs it; docs/reliability.md says how to read it.

mod check;
mod cluster;
mod disk;
mod driver;
mod faults;
mod history;
mod money;
mod probe;
mod random;
mod recorder;
mod report;
mod revoker;
mod run;
mod schedule;
mod skew;
mod snapshot;
mod sqlite;
mod stores;
mod subjects;

use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::run::Plan;
use crate::schedule::Fault;

#[derive(Parser)]
#[command(name = "chaos")]
struct Arguments {
    /// The seed of the schedule and of the load.
    #[arg(long)]
    seed: Option<u64>,
    /// Duration of each fault, and of the quiet phase after it.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds_per_fault: u64,
    /// Run only these faults.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    only: Vec<Fault>,
    /// Skip the faults that do not fit into this time. At least one runs.
    #[arg(long, value_name = "SECONDS")]
    budget_seconds: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let Arguments { seed, seconds_per_fault, only, budget_seconds } = Arguments::parse();
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(std::process::id()));
    let (fault, budget) = (Duration::from_secs(seconds_per_fault), budget_seconds.map(Duration::from_secs));
    let plan = Plan { seed, fault, only, budget };
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // A dropped run ends its servers, which also wakes a frozen database.
    let holds = tokio::select! {
        holds = run_all(&plan) => holds?,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    };
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the faults of replicas, and the scenario of a server on a SQLite file.
async fn run_all(plan: &Plan) -> Result<bool> {
    let has_sqlite = plan.only.is_empty() || plan.only.contains(&Fault::FillSqliteDisk);
    let has_replicas = plan.only.is_empty() || plan.only.iter().any(|fault| *fault != Fault::FillSqliteDisk);
    let of_sqlite = if has_sqlite { sqlite::run(plan.seed, plan.fault).await? } else { true };
    let of_replicas = if has_replicas { run::run(plan).await? } else { true };
    Ok(of_sqlite && of_replicas)
}
