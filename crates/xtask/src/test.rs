//! `cargo xtask test`: everything that proves the project.

use std::hash::{BuildHasher as _, RandomState};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::{golden, step};

/// How to test.
#[derive(Args, Default)]
pub struct Options {
    /// Draw the cases of property tests from this number, to repeat a run; without it every run draws a new one.
    #[arg(long)]
    seed: Option<u64>,
}

/// The variable that the library of property tests reads its seed from.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Builds everything, then runs every test and every doc test. The runner is `cargo test` on every machine, so that a
/// test which passes here passes there.
pub fn run(options: &Options) -> Result<()> {
    let seed = options.seed.or_else(chosen_seed).unwrap_or_else(fresh_seed);
    step::announce(&repetition(seed));
    let mut took = Duration::ZERO;
    // Everything at once and with the features of the tests, so that nothing is compiled for two sets of features. The
    // binary that the end-to-end tests start is among it.
    took += step::run(&mut step::cargo(&["build", "--workspace", "--all-targets", "--all-features"]))?;
    let scope = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let tests = [&scope[..], &["--lib", "--bins", "--tests"]].concat();
    let doc_tests = [&scope[..], &["--doc"]].concat();
    for arguments in [tests, doc_tests] {
        let mut command = comparing(step::cargo(&arguments), seed);
        // Whoever reads the end of a long log finds the seed there.
        took += step::run(&mut command).inspect_err(|_| step::announce(&repetition(seed)))?;
    }
    step::announce(&format!("every test passed, in {} s, with the seed {seed}", took.as_secs()));
    Ok(())
}

fn repetition(seed: u64) -> String {
    format!("property tests draw from the seed {seed}; to repeat this run: cargo xtask test --seed {seed}")
}

/// A seed that the caller has put into the environment.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it has no configuration")]
fn chosen_seed() -> Option<u64> {
    std::env::var(SEED).ok()?.parse().ok()
}

/// A number that no other run is likely to have drawn.
fn fresh_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// With the seed, and without any variable by which a test would write the file that it compares with.
fn comparing(mut command: Command, seed: u64) -> Command {
    command.env(SEED, seed.to_string()).env("INSTA_UPDATE", "no");
    for writing in ["INSTA_FORCE_PASS", "INSTA_FORCE_UPDATE", golden::WRITE] {
        command.env_remove(writing);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_get_the_seed_and_cannot_write_golden_files() {
        let command = comparing(Command::new("cargo"), 7);
        let variables: Vec<_> = command.get_envs().map(|(name, value)| (name.to_str(), value)).collect();
        for (name, value) in [(SEED, Some("7")), ("INSTA_UPDATE", Some("no"))] {
            assert!(variables.contains(&(Some(name), value.map(AsRef::as_ref))), "{name}: {variables:?}");
        }
        for name in ["INSTA_FORCE_PASS", "TOLLGATE_WRITE_GOLDEN"] {
            assert!(variables.contains(&(Some(name), None)), "{name}: {variables:?}");
        }
    }

    #[test]
    fn seed_is_fresh_for_each_run() {
        let seeds: std::collections::BTreeSet<u64> = (0..16).map(|_| fresh_seed()).collect();
        assert!(seeds.len() > 1, "{seeds:?}");
        assert!(repetition(7).ends_with("cargo xtask test --seed 7"));
    }
}
