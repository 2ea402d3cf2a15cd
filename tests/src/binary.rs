//! Where the binary under test lies.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

/// The binary of the profile that the tests were built in; built once where it is not there.
pub(crate) fn tollgate() -> Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BINARY.get_or_init(|| find_or_build().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

fn find_or_build() -> Result<PathBuf> {
    let tests = std::env::current_exe()?;
    // target/<profile>/deps/<tests>
    let profile = tests.ancestors().nth(2).context("the tests do not lie in a target folder")?;
    let binary = profile.join(format!("tollgate{}", std::env::consts::EXE_SUFFIX));
    if !binary.is_file() {
        build(profile)?;
    }
    Ok(binary)
}

fn build(profile: &Path) -> Result<()> {
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = profile.parent().context("a profile's folder lies in a target folder")?;
    let status = std::process::Command::new(env!("CARGO"))
        .args(["build", "--package", "tollgate", "--profile", name, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    if !status.success() {
        bail!("the binary could not be built");
    }
    Ok(())
}
