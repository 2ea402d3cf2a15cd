//! `cargo xtask lint` and the demo: the checks of CI beside the tests.

use anyhow::Result;

use crate::{deny, links, step};

/// Checks format, lints, the domain on its own, documentation, links and dependencies.
pub fn lint() -> Result<()> {
    step::run(&mut step::cargo(&["fmt", "--all", "--check"]))?;
    links::run()?;
    // The domain builds without its default features, and other programs can embed it.
    step::run(&mut step::cargo(&["build", "--package", "domain", "--no-default-features"]))?;
    step::run(&mut step::cargo(&["run", "--quiet", "--package", "domain", "--example", "embed"]))?;
    step::run(&mut step::cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    step::run(step::cargo(&["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    deny::run()?;
    step::announce("every check passed");
    Ok(())
}

/// Runs the demo with the shipped build profile, as a new user does.
pub fn demo() -> Result<()> {
    step::run(&mut step::cargo(&["run", "--release", "--", "demo", "--exit"]))?;
    Ok(())
}
