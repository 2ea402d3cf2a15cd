//! `cargo xtask chaos`: builds the gateway and the chaos driver, then runs it.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{servers, step, workspace};

/// How to run.
#[derive(Args)]
pub struct Options {
    /// The seed of the schedule and of the load, to repeat a run; without it every run draws a new one.
    #[arg(long)]
    seed: Option<u64>,
    /// Duration of each fault; a quiet phase of the same length follows.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds_per_fault: u64,
    /// Run only these faults.
    #[arg(long, value_name = "FAULT", value_delimiter = ',')]
    only: Vec<String>,
    /// Skip the faults that do not fit into this time, which begins after the build.
    #[arg(long, value_name = "SECONDS")]
    budget_seconds: Option<u64>,
    /// Use the build of `cargo xtask test` instead of a release build: for CI.
    #[arg(long)]
    dev: bool,
}

/// Builds and runs the driver.
pub fn run(options: &Options) -> Result<()> {
    servers::install_missing()?;
    let (build, folder): (&[&str], _) = if options.dev {
        (&["build", "--workspace", "--all-targets", "--all-features"], "debug")
    } else {
        (&["build", "--release", "--package", "tollgate", "--package", "chaos"], "release")
    };
    step::run(&mut step::cargo(build))?;
    let binary = workspace::program(&workspace::target().join(folder), "chaos");
    let mut command = Command::new(binary);
    command.args(["--seconds-per-fault", &options.seconds_per_fault.to_string()]);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(seconds) = options.budget_seconds {
        command.args(["--budget-seconds", &seconds.to_string()]);
    }
    if !options.only.is_empty() {
        command.args(["--only", &options.only.join(",")]);
    }
    step::run(&mut command)?;
    Ok(())
}
