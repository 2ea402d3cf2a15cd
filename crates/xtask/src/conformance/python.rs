//! A Python environment of its own with the packages of a requirements file.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::{clear, is_filled_for, mark_filled_for};
use crate::step;

/// The oldest Python that the packages run on.
const OLDEST: &str = "3.11";

/// Installs what the lock file lists, each checked by its hash, unless the folder has it; returns the interpreter.
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
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
    pip.arg(requirements);
    step::run(&mut pip)?;
    mark_filled_for(folder, &wanted)?;
    Ok(interpreter)
}

/// Makes an empty environment. Some systems ship Python without what that needs; then it is got first.
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

/// Debian and its kin keep `ensurepip` in a package of its own. To install one takes the rights to do so.
fn with_system_package(folder: &Path) -> bool {
    let apt = |arguments: &[&str]| {
        step::succeeds(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let install = ["install", "--yes", "--no-install-recommends", "python3-venv"];
    step::announce("python3-venv is missing: trying to install it");
    (apt(&install) || (apt(&["update"]) && apt(&install))) && with_venv(folder)
}

/// `virtualenv` brings what `venv` lacks; it is kept beside the environment, and nothing of the system is changed.
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
