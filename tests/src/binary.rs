//! The binary under test.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

/// Returns the binary of the tests' build profile. Builds it if it is missing or older than its sources, so that tests
/// never use outdated code.
pub(crate) fn tollgate() -> Result<PathBuf> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BINARY.get_or_init(|| find_or_build().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!(error))
}

/// Returns the folder of the binary, for a shell's `PATH`.
pub fn folder() -> Result<PathBuf> {
    Ok(tollgate()?.parent().context("a binary lies in a folder")?.to_owned())
}

fn find_or_build() -> Result<PathBuf> {
    let tests = std::env::current_exe()?;
    // target/<profile>/deps/<tests>, or target/<profile>/<program>
    let folder = tests.parent().context("the tests do not lie in a folder")?;
    let is_test = folder.file_name().is_some_and(|name| name == "deps");
    let profile = if is_test { folder.parent() } else { Some(folder) };
    let profile = profile.context("the tests do not lie in a target folder")?;
    let binary = profile.join(format!("tollgate{}", std::env::consts::EXE_SUFFIX));
    if !is_fresh(&binary).unwrap_or(false) {
        build(profile)?;
    }
    Ok(binary)
}

/// Returns false if a source of the binary has changed or was removed since the build.
fn is_fresh(binary: &Path) -> Result<bool> {
    let built = binary.metadata()?.modified()?;
    // Cargo's dependency file beside a binary: `<binary>: <source> <source> …`, with escaped spaces.
    let noted = std::fs::read_to_string(binary.with_extension("d"))?;
    let (_, sources) = noted.split_once(": ").context("cargo notes no sources")?;
    for source in sources.trim_end().replace("\\ ", "\0").split(' ') {
        if Path::new(&source.replace('\0', " ")).metadata()?.modified()? > built {
            return Ok(false);
        }
    }
    Ok(true)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn binary_is_fresh_until_source_is_newer() -> Result<()> {
        let folder = tempfile::TempDir::new()?;
        let at = |name: &str| folder.path().join(name);
        let (binary, plain, blank) = (at("tollgate"), at("a.rs"), at("b c.rs"));
        for file in [&binary, &plain, &blank] {
            std::fs::write(file, "")?;
        }
        assert!(is_fresh(&binary).is_err(), "nothing is noted");
        let escaped = blank.display().to_string().replace(' ', "\\ ");
        std::fs::write(at("tollgate.d"), format!("{}: {} {escaped}\n", binary.display(), plain.display()))?;
        let long_ago = SystemTime::UNIX_EPOCH;
        let set = |file: &Path, after: u64| {
            std::fs::File::options().write(true).open(file)?.set_modified(long_ago + Duration::from_secs(after))
        };
        set(&binary, 10)?;
        set(&plain, 10)?;
        set(&blank, 9)?;
        assert!(is_fresh(&binary)?);
        set(&blank, 11)?;
        assert!(!is_fresh(&binary)?);
        std::fs::remove_file(&blank)?;
        assert!(is_fresh(&binary).is_err(), "a source is gone");
        Ok(())
    }
}
