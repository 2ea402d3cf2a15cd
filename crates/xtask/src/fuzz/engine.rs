//! The fuzz program and its command line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::{step, workspace};

/// The limits and the seed of a search.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) time: Duration,
    pub(super) inputs: Option<u64>,
    pub(super) seed: Option<u32>,
}

impl Bounds {
    pub(super) fn of(time: Duration) -> Self {
        Self { time, inputs: None, seed: None }
    }
}

/// LLVM options of the stable compiler that instrument the program with libFuzzer's coverage.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];

/// The maximum length of an input, in bytes.
const MAX_BYTES: u32 = 16 << 10;
/// The maximum time for an input, in seconds.
const MAX_SECONDS: u32 = 10;
/// The maximum memory, in MiB: no request may make its reader use more.
const MAX_MIB: u32 = 2048;

/// The error for a missing compiler.
const NO_COMPILER: &str =
    "libFuzzer needs a C++ compiler (`c++`, or what CXX says): install one, such as the package g++";

/// A built program.
pub struct Engine {
    binary: PathBuf,
}

impl Engine {
    /// Builds the program.
    ///
    /// # Errors
    /// There is no C++ compiler, or the build fails.
    pub fn build() -> Result<Self> {
        if !has_cxx() {
            bail!(NO_COMPILER);
        }
        let host = host()?;
        let folder = workspace::target().join("fuzz-guided");
        let build = ["build", "--profile", "fuzz", "--package", "fuzz", "--target", &host];
        let flags = COVERAGE.join("\u{1f}");
        // A separate folder: the flags would invalidate the builds of other tasks.
        let mut command = step::cargo(&build);
        command.env("CARGO_ENCODED_RUSTFLAGS", flags).env("CARGO_TARGET_DIR", &folder);
        step::run(&mut command)?;
        Ok(Self { binary: workspace::program(&folder.join(host).join("fuzz"), "fuzz") })
    }

    /// Returns the names of all targets.
    pub fn targets(&self) -> Result<Vec<String>> {
        let output = self.program("list").output().context("the fuzz program does not start")?;
        let names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        if !output.status.success() || names.is_empty() {
            bail!("the fuzz program lists no targets: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(names)
    }

    /// Writes the initial inputs of a target.
    pub fn write_seeds(&self, target: &str, folder: &Path) -> Result<()> {
        let output = self.program(target).env("FUZZ_SEEDS", folder).output()?;
        if !output.status.success() {
            bail!("{target} has no seeds: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Returns the command that searches: initial inputs in `seeds`, inputs with new coverage in `corpus`, failures in
    /// `found`.
    pub fn search(&self, target: &str, [corpus, seeds, found]: [&Path; 3], bounds: Bounds) -> Command {
        let mut command = self.program(target);
        command.args([corpus, seeds]).args([
            format!("-artifact_prefix={}/", found.display()),
            format!("-max_total_time={}", bounds.time.as_secs().max(1)),
            format!("-max_len={MAX_BYTES}"),
            format!("-timeout={MAX_SECONDS}"),
            format!("-rss_limit_mb={MAX_MIB}"),
            "-print_final_stats=1".to_owned(),
        ]);
        command.args(bounds.inputs.map(|inputs| format!("-runs={inputs}")));
        command.args(bounds.seed.map(|seed| format!("-seed={seed}")));
        command
    }

    /// Returns the shell command that checks one input.
    pub fn reproduction(&self, target: &str, file: &Path) -> String {
        format!("FUZZ_TARGET={target} {} {}", self.binary.display(), file.display())
    }

    fn program(&self, target: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("FUZZ_TARGET", target).env_remove("FUZZ_SEEDS").current_dir(workspace::root());
        command
    }
}

#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: it asks as the cc crate asks")]
fn has_cxx() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    step::succeeds(Command::new(compiler).arg("--version"))
}

/// Returns the host's target triple. With `--target`, flags do not apply to build scripts.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").current_dir(workspace::root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what platform it is for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_command_has_bounds_and_folders() {
        let engine = Engine { binary: "/x/fuzz".into() };
        let folders = ["/c", "/s", "/f"].map(Path::new);
        let bounds = Bounds::of(Duration::from_secs(7));
        let command = engine.search("t", folders, bounds);
        let arguments: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments[..4], ["/c", "/s", "-artifact_prefix=/f/", "-max_total_time=7"]);
        assert_eq!(engine.reproduction("t", Path::new("/f/crash-1")), "FUZZ_TARGET=t /x/fuzz /f/crash-1");
        assert!(!arguments.iter().any(|argument| argument.starts_with("-seed") || argument.starts_with("-runs")));
        let repeatable = Bounds { seed: Some(3), inputs: Some(9), ..bounds };
        let command = engine.search("t", folders, repeatable);
        let arguments: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(arguments[arguments.len() - 2..], ["-runs=9", "-seed=3"]);
    }

    #[test]
    fn host_returns_target_triple() {
        assert!(host().unwrap().contains('-'));
    }
}
