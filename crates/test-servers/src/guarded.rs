//! Child processes that end with the test process, however it ends.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;

use crate::process;
use crate::user::User;

/// A server under a shell that waits for the end of its standard input, which closes when the test process ends, and
/// then stops the server and removes its folder.
pub(crate) struct Guarded {
    shell: Child,
    /// Closed to stop the server.
    input: Option<ChildStdin>,
}

const SCRIPT: &str = r#"folder=$1; signal=$2; shift 2; "$@" & server=$!; read -r _; kill -CONT "$server"; kill -"$signal" "$server"; wait "$server"; rm -rf "$folder""#;

impl Guarded {
    /// Starts a server that ends at `signal`.
    pub(crate) fn start(
        folder: &Path,
        program: &Path,
        arguments: &[String],
        user: User,
        signal: &str,
    ) -> anyhow::Result<Self> {
        let log = folder.join("log");
        let output = std::fs::File::create(log).context("the log of the server cannot be created")?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(folder).arg(signal).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        let mut shell =
            user.run(&mut command).spawn().with_context(|| format!("{} did not start", program.display()))?;
        let input = shell.stdin.take();
        Ok(Self { shell, input })
    }

    /// Returns the id of the server's process.
    pub(crate) fn server(&self) -> anyhow::Result<u32> {
        process::children(self.shell.id())?.first().copied().context("the server has not started")
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.input.take());
        // The shell ends after the server; there is nobody to tell about an error.
        drop(self.shell.wait());
    }
}
