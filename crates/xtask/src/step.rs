//! One command of a task: announced, run, timed.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// A `cargo` command at the root of the repository.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Says what is about to run.
pub fn announce(what: &str) {
    // A closed terminal is no reason to stop a task.
    let _ = writeln!(std::io::stderr(), "\n==> {what}");
}

/// Runs a command to its end; it is an error that it fails.
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

/// True where the command exists and ends well; says nothing.
pub fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The time for measuring how long a step took.
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
    fn a_command_is_shown_as_it_would_be_typed() {
        assert_eq!(describe(&cargo(&["build", "-p", "domain"])), "cargo build -p domain");
    }

    #[test]
    fn a_command_that_fails_or_does_not_exist_is_an_error() {
        assert!(run(&mut Command::new("true")).is_ok());
        assert!(run(&mut Command::new("false")).unwrap_err().to_string().contains("`false` failed"));
        assert!(run(&mut Command::new("no-such-program-anywhere")).is_err());
    }
}
