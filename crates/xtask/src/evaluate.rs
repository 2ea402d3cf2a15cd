//! `cargo xtask evaluate`: evaluates real models with the binary, on generated tickets and on news, with known outcomes.
//!
//! It installs the packages, exactly the versions of the lock file in `tests/evidence`, under the target folder.

use std::process::Command;

use anyhow::Result;

use crate::conformance::python;
use crate::{step, workspace};

/// Builds the binary, installs missing packages, and runs the evaluation.
pub fn run() -> Result<()> {
    step::run(&mut step::build_programs(&["tollgate"]))?;
    let scripts = workspace::root().join("tests").join("evidence");
    let installed = workspace::target().join("evidence");
    std::fs::create_dir_all(&installed)?;
    let python = python::install(&scripts.join("requirements.lock"), &installed.join("python"))?;
    let binary = workspace::program(&workspace::target().join("debug"), "tollgate");
    // The scripts write no bytecode into the clone.
    let took = step::run(Command::new(python).arg("-B").arg(scripts.join("run.py")).arg(binary))?;
    step::announce(&format!("the real models have the known outcomes, in {} s", took.as_secs()));
    Ok(())
}
