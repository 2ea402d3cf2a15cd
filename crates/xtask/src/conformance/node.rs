//! A folder with a Node package and the scripts that use it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{clear, is_filled_for, mark_filled_for};
use crate::step;

/// The oldest major version of Node that the package runs on.
const OLDEST: u32 = 18;

/// The direct dependencies, and everything that they bring with the hashes of each.
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs what the lock file of the scripts' folder lists, unless the folder has it, and copies the scripts beside
/// it, as modules are looked for upwards from the script; returns the folder.
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
        // Scripts of packages are not run, as the package's own asks its vendor's server for news.
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

/// The 20 of `v20.1.0`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v8.0.0"), Some(8));
        assert_eq!(major("20.20.2"), None);
        assert_eq!(major(""), None);
    }
}
