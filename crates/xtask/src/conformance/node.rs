//! A folder with Node packages and the scripts that use them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::folder::{clear, is_filled_for, mark_filled_for};
use crate::step;

/// The oldest supported major version of Node.
const OLDEST: u32 = 18;

/// The direct dependencies, and the lock file with the hashes of all dependencies.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the locked packages if they are missing, and copies the scripts beside them, as Node looks for modules in
/// the script's parent folders. Returns the folder.
pub fn install(scripts: &Path, folder: &Path) -> Result<PathBuf> {
    let mut wanted = Vec::new();
    for file in FILES {
        wanted.extend(std::fs::read(scripts.join(file))?);
    }
    if !is_filled_for(folder, &wanted) {
        clear(folder)?;
        std::fs::create_dir_all(folder)?;
        check_version()?;
        for file in FILES {
            std::fs::copy(scripts.join(file), folder.join(file))?;
        }
        let mut npm = Command::new("npm");
        // Install scripts are skipped: one of them contacts its vendor's server.
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        step::run(npm.current_dir(folder))?;
        mark_filled_for(folder, &wanted)?;
    }
    for entry in std::fs::read_dir(scripts)? {
        let script = entry?.path();
        if let Some(name) = script.file_name().filter(|_| script.extension().is_some_and(|kind| kind == "mjs")) {
            std::fs::copy(&script, folder.join(name))?;
        }
    }
    Ok(folder.to_owned())
}

fn check_version() -> Result<()> {
    let needed = format!("the client packages need Node {OLDEST} or newer as `node`, with npm: install it");
    let output = Command::new("node").arg("--version").output().with_context(|| needed.clone())?;
    match major(&String::from_utf8_lossy(&output.stdout)) {
        Some(version) if version >= OLDEST => Ok(()),
        _ => bail!(needed),
    }
}

/// Parses the 20 of `v20.1.0`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_parses_version_of_node() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major("20.20.2"), None);
        assert_eq!(major(""), None);
    }
}
