//! `cargo xtask soak`: builds the gateway and the benchmark, then loads the gateway for a long time.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::{step, workspace};

/// How to soak.
#[derive(Args)]
pub struct Options {
    /// The duration of the load, in minutes.
    #[arg(long, default_value_t = 30)]
    minutes: u32,
}

/// Builds in release and runs the soak test.
pub fn run(options: &Options) -> Result<()> {
    step::run(&mut step::cargo(&["build", "--release", "--package", "tollgate", "--package", "bench"]))?;
    let folder = workspace::target().join("release");
    let mut command = Command::new(workspace::program(&folder, "bench"));
    command.args(["soak", "--minutes", &options.minutes.to_string(), "--tollgate"]);
    command.arg(workspace::program(&folder, "tollgate"));
    step::run(&mut command)?;
    Ok(())
}
