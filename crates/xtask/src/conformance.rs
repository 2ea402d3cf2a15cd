//! `cargo xtask conformance`: published client packages, unmodified, against the binary.
//!
//! It installs the packages itself, at the exact versions of `tests/conformance`, under the target folder; nothing else
//! of the repository needs them. The checks are the scripts of that folder.

mod node;
mod python;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{step, workspace};

/// Builds the binary, installs the packages where that has not been done, and runs every check.
pub fn run() -> Result<()> {
    // With the features of `cargo xtask test`, so that after it little is left to build.
    step::run(&mut step::cargo(&["build", "--workspace", "--all-features", "--bin", "tollgate"]))?;
    let installed = workspace::target().join("conformance");
    std::fs::create_dir_all(&installed)?;
    let python = python::install(&scripts().join("requirements.txt"), &installed.join("python"))?;
    let node = node::install(&scripts(), &installed.join("node"))?;
    let binary = workspace::target().join("debug").join(format!("tollgate{}", std::env::consts::EXE_SUFFIX));
    let mut checks = std::process::Command::new(python);
    // The scripts leave nothing behind in the clone.
    checks.arg("-B").arg(scripts().join("run.py")).arg(binary).arg(node);
    let took = step::run(&mut checks)?;
    step::announce(&format!("every client package is served, in {} s", took.as_secs()));
    Ok(())
}

/// Where the scripts are.
fn scripts() -> PathBuf {
    workspace::root().join("tests").join("conformance")
}

/// True where the folder was filled for exactly this list of packages.
fn is_filled_for(folder: &Path, wanted: &[u8]) -> bool {
    std::fs::read(folder.join(FILLED)).is_ok_and(|had| had == wanted)
}

/// Remembers what the folder was filled for; the last step of an installation.
fn mark_filled_for(folder: &Path, wanted: &[u8]) -> Result<()> {
    Ok(std::fs::write(folder.join(FILLED), wanted)?)
}

/// Empties the folder of an installation that is another or was never finished.
fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

const FILLED: &str = "filled-for";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_filled_once_it_is_marked_and_only_for_that_list() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_filled_for(folder.path(), b"a==1"));
        mark_filled_for(folder.path(), b"a==1").unwrap();
        assert!(is_filled_for(folder.path(), b"a==1"));
        assert!(!is_filled_for(folder.path(), b"a==2"));
        clear(folder.path()).unwrap();
        assert!(!is_filled_for(folder.path(), b"a==1"));
        clear(folder.path()).unwrap();
    }

    #[test]
    fn every_version_is_exact() {
        let requirements = std::fs::read_to_string(scripts().join("requirements.txt")).unwrap();
        let lines: Vec<&str> = requirements.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert!(lines.len() > 2 && lines.iter().all(|line| line.contains("==")), "{lines:?}");
        let package = std::fs::read_to_string(scripts().join("package.json")).unwrap();
        let (_, dependencies) = package.split_once("\"dependencies\"").unwrap();
        let versions = dependencies.lines().filter_map(|line| line.split_once("\": \"").map(|(_, version)| version));
        let versions: Vec<&str> = versions.collect();
        assert!(!versions.is_empty() && versions.iter().all(|version| version.starts_with(char::is_numeric)));
    }
}
