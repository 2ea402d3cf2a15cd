//! One command of a task: printed, run and timed.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// Returns a `cargo` command at the root of the repository.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Returns the command that builds programs of the workspace. Cargo chooses the features of dependencies by the targets:
/// with a test among them it reuses the build of `cargo xtask test`.
pub fn build_programs(names: &[&str]) -> Command {
    let mut command = cargo(&["build", "--workspace", "--all-features", "--test", "deployment"]);
    command.args(names.iter().flat_map(|name| ["--bin", name]));
    command
}

/// Prints the next step.
pub fn announce(what: &str) {
    // A closed terminal must not stop a task.
    let _ = writeln!(std::io::stderr(), "\n==> {what}");
}

/// Runs a command and returns its duration; a failure is an error.
pub fn run(command: &mut Command) -> Result<Duration> {
    let shown = describe(command);
    announce(&shown);
    let began = now();
    let status = command.status().with_context(|| format!("`{shown}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(began.elapsed())
}

/// Returns true if the command exists and succeeds; prints nothing.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the current time, to measure the duration of a step.
#[expect(clippy::disallowed_methods, reason = "a task of the build, not the service: there is no clock port here")]
pub fn now() -> Instant {
    Instant::now()
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describe_shows_command_as_typed() {
        assert_eq!(describe(&cargo(&["build", "-p", "domain"])), "cargo build -p domain");
    }

    #[test]
    fn build_programs_selects_programs_and_a_test() {
        let shown = describe(&build_programs(&["a", "b"]));
        assert!(shown.ends_with("--all-features --test deployment --bin a --bin b"), "{shown}");
        assert!(workspace::root().join("crates/xtask/tests/deployment.rs").is_file());
    }

    #[test]
    fn run_fails_when_command_fails_or_is_missing() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).unwrap_err().to_string().contains("`false` failed"));
        assert!(run(&mut Command::new("no-such-program-anywhere")).is_err());
    }
}
