//! `cargo xtask bench`: builds the gateway and the benchmark, then runs it.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{servers, step, workspace};

/// How to measure.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line are what they are")]
pub struct Options {
    /// A short run: fewer rounds and a smaller file. Good for seeing that it works, too short for figures.
    #[arg(long)]
    quick: bool,
    /// Also promote a file of 5 GB.
    #[arg(long)]
    large: bool,
    /// One JSON document instead of the table.
    #[arg(long)]
    json: bool,
    /// Build with the profile `release` instead of the shipped one: faster to build, slower code.
    #[arg(long)]
    release: bool,
    /// Measure one to three replicas over PostgreSQL instead.
    #[arg(long)]
    replicas: bool,
    /// With `--replicas`: keys in the database.
    #[arg(long, requires = "replicas", default_value_t = 1_000)]
    keys: usize,
    /// With `--replicas` or `--only growth`: usage records in the database; 10 million take about 5 GB of disk.
    #[arg(long, default_value_t = 0)]
    records: usize,
    /// Measure only these parts. The part `growth` runs only if it is named, also over PostgreSQL.
    #[arg(long, value_name = "PART", value_delimiter = ',', conflicts_with = "replicas")]
    only: Vec<String>,
}

/// Builds and runs the benchmark.
pub fn run(options: &Options) -> Result<()> {
    let profile = if options.release { "release" } else { "dist" };
    step::run(&mut step::cargo(&["build", "--profile", profile, "--package", "tollgate", "--package", "bench"]))?;
    let folder = workspace::target().join(profile);
    let mut command = Command::new(workspace::program(&folder, "bench"));
    command.args(["run", "--profile", profile, "--tollgate"]).arg(workspace::program(&folder, "tollgate"));
    for (wanted, flag) in [(options.quick, "--quick"), (options.large, "--large"), (options.json, "--json")] {
        if wanted {
            command.arg(flag);
        }
    }
    command.args(["--records", &options.records.to_string()]);
    if options.replicas || options.only.iter().any(|part| part == "growth") {
        servers::install_missing()?;
    }
    if options.replicas {
        command.args(["--only", "replicas", "--replica-keys", &options.keys.to_string()]);
    } else if !options.only.is_empty() {
        command.arg("--only").arg(options.only.join(","));
    }
    step::run(&mut command)?;
    Ok(())
}
