//! `cargo xtask test`: builds the workspace and runs every test.

use std::hash::{BuildHasher as _, RandomState};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::{golden, servers, step};

/// How to test.
#[derive(Args, Default)]
pub struct Options {
    /// Draw the cases of property tests from this number, to repeat a run; without it every run draws a new one.
    #[arg(long)]
    seed: Option<u64>,
}

/// The variable with the seed of property tests.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The variable that puts the instances of end-to-end tests on a PostgreSQL server.
const DATABASE: &str = "TOLLGATE_TEST_DATABASE";

/// The end-to-end tests that run again on PostgreSQL: those of shared state and of money. Left out are tests that damage
/// rows by SQL of SQLite, and one that makes the row of a lost process older.
const ON_POSTGRES: [&str; 24] = [
    "replicas::",
    "propagation::",
    "limits::",
    "usage::",
    "crashes::",
    "store_journals::",
    "rotation::",
    "paused_process::",
    "idempotency::",
    "rates::",
    "management::",
    "guardrails::",
    "promote::",
    "workspace_command::",
    "rejections::",
    "cascades::",
    "evidence::",
    "presets::",
    "evaluations::",
    "hostile_texts::",
    "--skip",
    "table_with_several_pages_is_complete",
    "--skip",
    "missing_journal_is_declared_lost",
];

/// Builds everything, then runs every test and every doc test with `cargo test`, on all machines alike.
pub fn run(options: &Options) -> Result<()> {
    let seed = options.seed.or_else(chosen_seed).unwrap_or_else(fresh_seed);
    step::announce(&repeat_command(seed));
    servers::install_missing()?;
    let mut took = Duration::ZERO;
    // One build with the tests' features avoids a second compilation. It includes the binary that the end-to-end tests
    // start.
    took += step::run(&mut step::cargo(&["build", "--workspace", "--all-targets", "--all-features"]))?;
    let scope = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let tests = [&scope[..], &["--lib", "--bins", "--tests"]].concat();
    let doc_tests = [&scope[..], &["--doc"]].concat();
    let on_postgres = [&scope[..], &["--test", "e2e", "--"], &ON_POSTGRES].concat();
    for (arguments, database) in [(tests, None), (doc_tests, None), (on_postgres, Some("postgres"))] {
        let mut command = with_test_environment(step::cargo(&arguments), seed);
        command.envs(database.map(|database| (DATABASE, database)));
        // Repeated here, as readers of a long log begin at its end.
        took += step::run(&mut command).inspect_err(|_| step::announce(&repeat_command(seed)))?;
    }
    step::announce(&format!("every test passed, in {} s, with the seed {seed}", took.as_secs()));
    Ok(())
}

/// Runs the contract suites and the end-to-end tests of [`ON_POSTGRES`] through a pooler. Debian 12 has a version that is
/// too old, so that this is no part of `cargo xtask test`.
pub fn run_through_pooler() -> Result<()> {
    servers::install_missing()?;
    step::run(&mut step::cargo(&["build", "--workspace", "--all-targets", "--all-features"]))?;
    let scope = ["test", "--workspace", "--all-features", "--no-fail-fast"];
    let contracts = [&scope[..], &["--test", "postgres_pooler", "--", "--ignored"]].concat();
    let end_to_end = [&scope[..], &["--test", "e2e", "--"], &ON_POSTGRES].concat();
    for arguments in [contracts, end_to_end] {
        step::run(with_test_environment(step::cargo(&arguments), fresh_seed()).env(DATABASE, "pooler"))?;
    }
    Ok(())
}

fn repeat_command(seed: u64) -> String {
    format!("property tests draw from the seed {seed}; to repeat this run: cargo xtask test --seed {seed}")
}

/// Returns the seed from the environment.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it has no configuration")]
fn chosen_seed() -> Option<u64> {
    std::env::var(SEED).ok()?.parse().ok()
}

/// Returns a seed that differs between runs.
fn fresh_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Sets the seed and removes every variable that makes tests write golden files.
fn with_test_environment(mut command: Command, seed: u64) -> Command {
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
        let command = with_test_environment(Command::new("cargo"), 7);
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
        assert!(repeat_command(7).ends_with("cargo xtask test --seed 7"));
    }
}
