//! cargo-deny: allowed crates, licences and sources.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{step, workspace};

/// A fixed version, so that a new release of the tool does not break a build.
const VERSION: &str = "0.20.2";

/// Checks bans, licences and sources; installs the tool under the target folder if it is missing.
pub fn run() -> Result<()> {
    let tool = tool()?;
    step::run(Command::new(tool).args(["check", "bans", "licenses", "sources"]).current_dir(workspace::root()))?;
    Ok(())
}

fn tool() -> Result<PathBuf> {
    let tools = workspace::target().join("tools");
    let tool = workspace::program(&tools.join("bin"), "cargo-deny");
    if !is_right_version(&tool) {
        // A debug build: compiling an optimised tool takes longer than running this one.
        let install = ["install", "cargo-deny", "--locked", "--debug", "--force", "--version", VERSION, "--root"];
        step::run(step::cargo(&install).arg(&tools).env("CARGO_TARGET_DIR", tools.join("build")))?;
    }
    Ok(tool)
}

fn is_right_version(tool: &PathBuf) -> bool {
    let output = Command::new(tool).arg("--version").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == format!("cargo-deny {VERSION}"))
}
