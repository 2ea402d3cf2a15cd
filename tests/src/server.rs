//! A running `tollgate serve`.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::{Call, Reply, openapi};

/// The maximum time of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum time of a stop.
const STOP_TIMEOUT: Duration = Duration::from_mins(1);

/// A running server; killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    output: PathBuf,
}

impl Server {
    pub(crate) async fn start(command: Command, address: SocketAddr, folder: &Path) -> Result<Self> {
        let log = File::options().create(true).append(true).open(output_file(folder, address))?;
        Self::start_logging_to(log.into(), command, address, folder).await
    }

    pub(crate) async fn start_logging_to(
        stderr: Stdio,
        mut command: Command,
        address: SocketAddr,
        folder: &Path,
    ) -> Result<Self> {
        let output = output_file(folder, address);
        let stdout = File::options().create(true).append(true).open(&output)?;
        let child = command.stdout(stdout).stderr(stderr).kill_on_drop(true).spawn()?;
        // The command holds descriptors, such as the end of a pipe, that only the server must have.
        drop(command);
        let mut server = Self { child, address, output };
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = server.child.try_wait()? {
                bail!("the server ended with {status}: {}", server.output());
            }
            if Call::get("/health/ready").send(address).await.is_ok_and(|reply| reply.status == 200) {
                openapi::register(address, &Call::get("/openapi.json").send(address).await?)?;
                return Ok(server);
            }
            ensure!(Instant::now() < deadline, "the server is not ready: {}", server.output());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the process id; `None` after the exit.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Returns everything that the server has printed.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Sends a request.
    pub async fn send(&self, call: &Call) -> Result<Reply> {
        call.send(self.address).await
    }

    /// Sends a Decisions request with a JSON body.
    pub async fn decide(&self, secret: &str, body: impl AsRef<[u8]>) -> Result<Reply> {
        self.send(&decisions(secret, body)).await
    }

    /// Promotes a container's file.
    pub async fn promote(&self, secret: &str, container: &str, file_id: &str) -> Result<Reply> {
        self.send(&promotion(secret, container, file_id)).await
    }

    /// Fails unless the server responds normally.
    pub async fn ensure_healthy(&self) -> Result<()> {
        let reply = self.send(&Call::get("/health/ready")).await?;
        ensure!(reply.status == 200, "not ready any more: {}", reply.text());
        let output = self.output();
        ensure!(!output.contains("panicked"), "it panicked: {output}");
        Ok(())
    }

    /// Sends SIGTERM.
    pub async fn terminate(&self) -> Result<()> {
        self.signal("TERM").await
    }

    /// Sends SIGINT.
    pub async fn interrupt(&self) -> Result<()> {
        self.signal("INT").await
    }

    /// Sends SIGKILL and waits for the exit.
    pub async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Sends SIGTERM and waits for the exit.
    pub async fn stop(self) -> Result<()> {
        self.terminate().await?;
        let output = self.output.clone();
        let status = self.ended().await?;
        let log = || std::fs::read_to_string(output).unwrap_or_default();
        ensure!(status.code() == Some(0), "the server ended with {status}: {}", log());
        Ok(())
    }

    /// Waits for the exit of a server that was signalled to stop.
    pub async fn ended(mut self) -> Result<ExitStatus> {
        tokio::time::timeout(STOP_TIMEOUT, self.child.wait())
            .await
            .with_context(|| format!("the server does not stop: {}", self.output()))?
            .map_err(Into::into)
    }

    /// Sends a signal, named without `SIG`.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.child.id().context("the server has ended")?;
        let status = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {pid}")]).status().await?;
        ensure!(status.success(), "the signal was not sent");
        Ok(())
    }
}

fn output_file(folder: &Path, address: SocketAddr) -> PathBuf {
    folder.join(format!("output-{}.log", address.port()))
}

/// Returns a Decisions request with a JSON body.
pub fn decisions(secret: &str, body: impl AsRef<[u8]>) -> Call {
    Call::post("/api/v1/api/alpha/decisions").key(secret).json(body)
}

/// Returns a request that promotes a container's file.
pub fn promotion(secret: &str, container: &str, file_id: &str) -> Call {
    Call::post(format!("/api/v1/containers/{container}/files/{file_id}/promote")).key(secret)
}
