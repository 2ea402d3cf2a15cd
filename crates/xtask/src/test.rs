//! `cargo xtask test`: everything that proves the project.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::step;

/// What property tests draw from, so that one commit has one verdict wherever and however often it is tested. A search
/// for what these cases miss sets the variable, and `PROPTEST_CASES`, to something else.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261121");

/// Builds everything, then runs every test and every doc test.
pub fn run() -> Result<()> {
    let mut took = Duration::ZERO;
    // Everything at once and with the features of the tests, so that nothing is compiled for two sets of features. The
    // binary that the end-to-end tests start is among it.
    took += step::run(&mut step::cargo(&["build", "--workspace", "--all-targets", "--all-features"]))?;
    let nextest = step::succeeds(&mut step::cargo(&["nextest", "--version"]));
    let runner: &[&str] = if nextest { &["nextest", "run"] } else { &["test", "--lib", "--bins", "--tests"] };
    let scope = ["--workspace", "--all-features", "--no-fail-fast"];
    took += step::run(seeded(&mut step::cargo(&[runner, &scope].concat())))?;
    took += step::run(&mut step::cargo(&["test", "--doc", "--workspace", "--all-features"]))?;
    step::announce(&format!("every test passed, in {} s", took.as_secs()));
    Ok(())
}

/// A seed that the caller has chosen stays.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it has no configuration")]
fn seeded(command: &mut Command) -> &mut Command {
    let (name, seed) = SEED;
    if std::env::var_os(name).is_some() { command } else { command.env(name, seed) }
}
