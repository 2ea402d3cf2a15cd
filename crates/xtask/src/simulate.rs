//! `cargo xtask simulate`: checks the promises of the statistics on models whose accuracy is known.

use anyhow::Result;
use clap::Args;

use crate::step;

/// The options of a run.
#[derive(Args)]
pub struct Options {
    /// Runs of each setting; fewer than 100 decide nothing.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..))]
    seeds: u32,
}

/// Runs the example `simulate` of the crate `domain`.
pub fn run(options: &Options) -> Result<()> {
    let mut command = step::cargo(&["run", "--quiet", "--package", "domain", "--example", "simulate", "--"]);
    step::run(command.arg(options.seeds.to_string()))?;
    Ok(())
}
