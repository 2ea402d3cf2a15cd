//! `cargo xtask conformance`: runs published client packages, unmodified, against the binary.
//!
//! It installs the packages itself, exactly the versions of the lock files in `tests/conformance`, under the target
//! folder. Nothing else in the repository needs them. The checks are the scripts of that folder.

mod folder;
pub mod node;
pub mod python;

use std::path::PathBuf;

use anyhow::Result;

use crate::{step, workspace};

/// Builds the binary, installs missing packages, and runs every check.
pub fn run() -> Result<()> {
    step::run(&mut step::build_programs(&["tollgate"]))?;
    let installed = workspace::target().join("conformance");
    std::fs::create_dir_all(&installed)?;
    let python = python::install(&scripts().join("requirements.lock"), &installed.join("python"))?;
    let node = node::install(&scripts(), &installed.join("node"))?;
    let binary = workspace::program(&workspace::target().join("debug"), "tollgate");
    let mut checks = std::process::Command::new(python);
    // The scripts write no bytecode into the clone.
    checks.arg("-B").arg(scripts().join("run.py")).arg(binary).arg(node);
    let took = step::run(&mut checks)?;
    step::announce(&format!("every client package is served, in {} s", took.as_secs()));
    Ok(())
}

/// Returns the folder of the scripts.
fn scripts() -> PathBuf {
    workspace::root().join("tests").join("conformance")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(scripts().join(name)).unwrap();
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn requirements_pin_exact_versions() {
        let requirements = lines("requirements.txt");
        assert!(requirements.len() > 1 && requirements.iter().all(|line| line.contains("==")), "{requirements:?}");
        let package = std::fs::read_to_string(scripts().join("package.json")).unwrap();
        let (_, dependencies) = package.split_once("\"dependencies\"").unwrap();
        let versions = dependencies.lines().filter_map(|line| line.split_once("\": \"").map(|(_, version)| version));
        let versions: Vec<&str> = versions.collect();
        assert!(!versions.is_empty() && versions.iter().all(|version| version.starts_with(char::is_numeric)));
    }

    #[test]
    fn python_lock_has_hashes_of_every_package() {
        let lock = lines("requirements.lock");
        let pinned: Vec<&String> = lock.iter().filter(|line| !line.starts_with(' ')).collect();
        assert!(
            pinned.len() > 10 && pinned.iter().all(|line| line.contains("==") && line.ends_with('\\')),
            "{pinned:?}"
        );
        for (line, next) in lock.iter().zip(&lock[1..]).filter(|(line, _)| !line.starts_with(' ')) {
            assert!(next.trim().starts_with("--hash=sha256:"), "{line} has no hash");
        }
        assert!(!lock.iter().any(|line| line.contains("://") || line.starts_with("--")), "no registry is named");
        for wanted in lines("requirements.txt") {
            let (name, version) = wanted.split_once("==").unwrap();
            let name = name.split('[').next().unwrap();
            assert!(pinned.iter().any(|line| line.starts_with(&format!("{name}=={version} "))), "{wanted}");
        }
    }

    #[test]
    fn node_lock_has_hash_of_every_package() {
        let lock = std::fs::read_to_string(scripts().join("package-lock.json")).unwrap();
        let packages = lock.matches("\"node_modules/").count();
        assert!(packages > 1 && lock.matches("\"integrity\": \"sha512-").count() == packages, "{packages} packages");
        assert!(!lock.contains("\"resolved\""), "no registry is named");
        for line in lines("package.json").iter().filter(|line| line.starts_with("    \"")) {
            assert!(lock.contains(line.trim().trim_end_matches(',')), "{line}");
        }
    }
}
