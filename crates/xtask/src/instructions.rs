//! `cargo xtask instructions`: counts what an answer costs, and fails if it is more than it may be.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{step, workspace};

/// The most that an answer may cost the workers of a release build: 5 % above what was measured on 28 November 2026. The
/// goals are 70 allocations, 10 clock readings and, in the profile `dist`, 130,000 instructions. System calls depend on
/// the load, which is light under valgrind, so they have no bound. With everything on, a server under valgrind can be too
/// slow for its time limits, so that operation of the benchmark is run by hand.
const BOUNDS: [&str; 4] = ["instructions=185000", "allocations=110", "clock-readings=18.3", "atomic-operations=602"];

/// Builds the gateway as the demo does, the benchmark as the tests do, and counts.
pub fn run() -> Result<()> {
    if !step::succeeds(Command::new("valgrind").arg("--version")) {
        step::announce("skipped: the instructions of an answer need `valgrind`; install the package of that name");
        return Ok(());
    }
    step::run(&mut step::cargo(&["build", "--release"]))?;
    step::run(&mut step::build_programs(&["bench"]))?;
    let target = workspace::target();
    let folder = target.join("instructions");
    if folder.exists() {
        // Profiles of threads of another run would be counted.
        fs::remove_dir_all(&folder).with_context(|| format!("{} could not be removed", folder.display()))?;
    }
    let mut count = Command::new(workspace::program(&target.join("debug"), "bench"));
    count.args(["instructions", "--folder"]).arg(&folder);
    count.arg("--tollgate").arg(workspace::program(&target.join("release"), "tollgate"));
    count.args(BOUNDS.iter().flat_map(|bound| ["--at-most", bound]));
    step::run(&mut count)?;
    Ok(())
}
