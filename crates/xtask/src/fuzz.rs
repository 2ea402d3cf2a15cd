//! `cargo xtask fuzz`: builds the fuzz targets, verifies that the search finds a planted fault, then searches.
//!
//! The search is libFuzzer's, guided by coverage that the stable compiler can instrument; it needs a C++ compiler.

mod engine;
mod fleet;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::step;
use engine::{Bounds, Engine};
use fleet::{PLANTED, found_folder};

/// How to search.
#[derive(Args)]
pub struct Options {
    /// Seconds a target, at most.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Inputs a target, at most.
    #[arg(long)]
    inputs: Option<u64>,
    /// Draw from this number, and begin with nothing that earlier searches came to, so that a search can be repeated:
    /// with as many inputs it tries the same ones. Without it every search is another.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seed: Option<u32>,
    /// Targets at a time; as many as there are processors if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Search only these targets.
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    only: Vec<String>,
}

/// Builds the targets and searches; a failing input is an error.
pub fn run(options: &Options) -> Result<()> {
    let engine = Engine::build()?;
    verify_planted_fault_is_found(&engine)?;
    let targets = selected_targets(engine.targets()?, &options.only)?;
    let jobs = options.jobs.unwrap_or_else(processors).max(1);
    step::announce(&format!(
        "{} targets, {} s each at most, {jobs} at a time; what is found goes to {}",
        targets.len(),
        options.seconds,
        found_folder().display()
    ));
    let bounds =
        Bounds { seed: options.seed, inputs: options.inputs, ..Bounds::of(Duration::from_secs(options.seconds)) };
    let failed = fleet::search(&engine, &targets, jobs, bounds)?;
    if !failed.is_empty() {
        bail!("something does not hold in {}", failed.join(", "));
    }
    step::announce("nothing was found");
    Ok(())
}

/// Verifies that the search finds the planted fault.
fn verify_planted_fault_is_found(engine: &Engine) -> Result<()> {
    step::announce("a fault is planted for the search to find");
    let search = fleet::Search::begin(engine, PLANTED, Bounds::of(Duration::from_mins(1)))?;
    let ended = search.wait()?;
    if ended.held {
        bail!("the planted fault was not found: the search is blind");
    }
    if !ended.log.contains("the planted fault was found") {
        bail!("the search of the planted fault broke down:\n{}", ended.tail());
    }
    Ok(())
}

/// Returns the targets to search. The planted one is allowed, to show a failure.
fn selected_targets(all: Vec<String>, only: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = only.iter().find(|name| !all.contains(name) && *name != PLANTED) {
        bail!("there is no target {unknown}; there are {}", all.join(", "));
    }
    Ok(if only.is_empty() { all } else { only.to_vec() })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_targets_rejects_unknown_names() {
        let all = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(selected_targets(all(), &[]).unwrap(), all());
        assert_eq!(selected_targets(all(), &["b".to_owned()]).unwrap(), ["b"]);
        assert_eq!(selected_targets(all(), &[PLANTED.to_owned()]).unwrap(), [PLANTED]);
        assert!(selected_targets(all(), &["c".to_owned()]).is_err());
    }
}
