//! A Python virtual environment with the packages of a requirements file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::folder::{clear, is_filled_for, mark_filled_for};
use crate::step;

/// The oldest supported Python version.
const OLDEST: &str = "3.11";

/// Installs the locked packages with hash checking if they are missing. Returns the interpreter.
pub fn install(requirements: &Path, folder: &Path) -> Result<PathBuf> {
    let wanted = std::fs::read(requirements)?;
    let interpreter = folder.join("bin").join("python");
    if is_filled_for(folder, &wanted) && step::succeeds(Command::new(&interpreter).arg("--version")) {
        return Ok(interpreter);
    }
    let is_recent = format!("import sys; sys.exit(sys.version_info < ({}))", OLDEST.replace('.', ", "));
    if !step::succeeds(Command::new("python3").args(["-c", &is_recent])) {
        bail!("the client packages need Python {OLDEST} or newer as `python3`: install it");
    }
    create(folder)?;
    let mut pip = Command::new(&interpreter);
    // The file has every package that is needed.
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps"]);
    pip.arg("--requirement").arg(requirements);
    step::run(&mut pip)?;
    mark_filled_for(folder, &wanted)?;
    Ok(interpreter)
}

/// Creates an empty environment. On systems whose Python lacks `ensurepip`, installs the missing part first.
fn create(folder: &Path) -> Result<()> {
    let attempts: [fn(&Path) -> bool; 3] = [with_venv, with_system_package, with_virtualenv];
    for attempt in attempts {
        clear(folder)?;
        if attempt(folder) {
            return Ok(());
        }
    }
    clear(folder)?;
    bail!("`python3 -m venv` does not work here: install the system's package for it (python3-venv) or virtualenv")
}

fn with_venv(folder: &Path) -> bool {
    step::succeeds(Command::new("python3").args(["-m", "venv"]).arg(folder))
}

/// Installs Debian's separate package for `ensurepip`; this needs root.
fn with_system_package(folder: &Path) -> bool {
    let apt = |arguments: &[&str]| {
        step::succeeds(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let install = ["install", "--yes", "--no-install-recommends", "python3-venv"];
    step::announce("python3-venv is missing: trying to install it");
    (apt(&install) || (apt(&["update"]) && apt(&install))) && with_venv(folder)
}

/// Uses `virtualenv`, installed beside the environment without changes to the system.
fn with_virtualenv(folder: &Path) -> bool {
    let tool = folder.with_extension("tool");
    step::announce("trying virtualenv instead");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
        .arg(&tool)
        .arg("virtualenv");
    let mut create = Command::new("python3");
    create.args(["-m", "virtualenv"]).arg(folder).env("PYTHONPATH", &tool);
    step::succeeds(&mut pip) && step::succeeds(&mut create)
}
