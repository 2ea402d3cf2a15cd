//! The binary under test, in a temporary installation.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::clock::now;
use crate::http::{self, Connection};
use crate::process;
use crate::wires::{OUTBOUND, Outbound};

/// An installation: configuration, journal, and in its temporary folder the database and blobs, unless another
/// installation has them.
pub struct Gateway {
    binary: PathBuf,
    folder: TempDir,
    upstream: SocketAddr,
    database_url: String,
    /// The address that `serve` listens on.
    pub address: SocketAddr,
    /// The workspace of the benchmark's keys.
    pub workspace_id: String,
    /// The secret of an inference key.
    pub inference_key: String,
    /// The secret of a management key.
    pub management_key: String,
    running: Option<Child>,
}

impl Gateway {
    /// Creates an installation on SQLite with one provider per wire; starts no process.
    pub async fn install(binary: &Path, upstream: SocketAddr) -> Result<Self> {
        let folder = folder()?;
        let database_url = format!("sqlite://{}/tollgate.db", folder.path().display());
        Self::install_in(folder, database_url, binary, upstream).await
    }

    /// Creates an installation on a PostgreSQL database.
    pub async fn install_on(database_url: String, binary: &Path, upstream: SocketAddr) -> Result<Self> {
        Self::install_in(folder()?, database_url, binary, upstream).await
    }

    async fn install_in(folder: TempDir, database_url: String, binary: &Path, upstream: SocketAddr) -> Result<Self> {
        // Commands run in the installation's folder.
        let binary = binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?;
        let blobs = folder.path().join("blobs");
        let mut gateway = Self {
            address: configure(&folder, &database_url, &blobs, upstream)?,
            binary,
            folder,
            upstream,
            database_url,
            workspace_id: String::new(),
            inference_key: String::new(),
            management_key: String::new(),
            running: None,
        };
        gateway.command(&["migrate", "up"]).await?;
        let management = gateway.command(&["key", "create", "--management", "--name", "bench"]).await?;
        gateway.management_key = text(&management, "key")?;
        let inference = gateway.command(&["key", "create", "--name", "bench"]).await?;
        gateway.inference_key = text(&inference, "key")?;
        gateway.workspace_id = text(&inference, "workspace_id")?;
        Ok(gateway)
    }

    /// Creates another replica of an installation: its own folder with its own journal, the same database and blobs.
    pub fn replica(&self) -> Result<Self> {
        let folder = folder()?;
        let address = configure(&folder, &self.database_url, &self.folder.path().join("blobs"), self.upstream)?;
        Ok(Self {
            address,
            binary: self.binary.clone(),
            folder,
            upstream: self.upstream,
            database_url: self.database_url.clone(),
            workspace_id: self.workspace_id.clone(),
            inference_key: self.inference_key.clone(),
            management_key: self.management_key.clone(),
            running: None,
        })
    }

    /// Returns the installation's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the database URL in the form that the storage adapter takes.
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// Runs a command of the binary and returns its JSON document.
    pub async fn command(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.binary().args(arguments).arg("--json").output().await?;
        if !output.status.success() {
            bail!("tollgate {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        let printed = serde_json::from_slice(&output.stdout);
        let mut document: Value = printed.with_context(|| format!("tollgate {} gave no JSON", arguments.join(" ")))?;
        // The members of a record.
        if let Some(members) = document.as_object_mut()
            && let Some(Value::Object(record)) = members.get("data").cloned()
        {
            members.remove("data");
            members.extend(record);
        }
        Ok(document)
    }

    /// Starts `serve` and returns the time from the process's start to the first 200 of an authenticated read.
    pub async fn start(&mut self) -> Result<Duration> {
        let serve = self.binary();
        self.start_by(serve, Duration::from_secs(30)).await
    }

    /// Starts `serve` like [`Self::start`], under a program that takes the binary and its arguments.
    pub async fn start_under(&mut self, wrapper: &[&str]) -> Result<Duration> {
        let mut serve = Command::new(wrapper[0]);
        serve.args(&wrapper[1..]).arg(&self.binary);
        self.configured(&mut serve);
        self.start_by(serve, Duration::from_mins(10)).await
    }

    async fn start_by(&mut self, mut serve: Command, within: Duration) -> Result<Duration> {
        let log = File::options().create(true).append(true).open(self.folder.path().join("serve.log"))?;
        let began = now();
        let child = serve.arg("serve").stdout(Stdio::from(log.try_clone()?)).stderr(log).kill_on_drop(true).spawn()?;
        self.running = Some(child);
        let request = http::request("GET", "/api/v1/models/count?output_modalities=all", &self.management_key, None);
        while began.elapsed() < within {
            if let Ok(mut connection) = Connection::open(self.address).await
                && connection.exchange(&request).await.is_ok_and(|status| status == 200)
            {
                return Ok(began.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bail!("the gateway did not serve within {} s: {}", within.as_secs(), self.log())
    }

    /// Stops `serve` with SIGTERM, as a service manager does.
    pub async fn stop(&mut self) -> Result<()> {
        if let Some(mut child) = self.running.take() {
            process::terminate(&mut child).await.with_context(|| self.log())?;
        }
        Ok(())
    }

    /// Returns the process id of `serve`.
    pub fn pid(&self) -> Result<u32> {
        self.running.as_ref().and_then(Child::id).with_context(|| format!("the gateway has ended: {}", self.log()))
    }

    fn binary(&self) -> Command {
        let mut command = Command::new(&self.binary);
        self.configured(&mut command);
        command
    }

    fn configured(&self, command: &mut Command) {
        command.arg("--config").arg(self.folder.path().join("tollgate.toml")).current_dir(self.folder.path());
    }

    /// Returns the last log lines of `serve`.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.folder.path().join("serve.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

fn folder() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("tollgate-bench-").tempdir()?)
}

/// Writes a configuration into a folder, and returns the address to listen on.
fn configure(folder: &TempDir, database_url: &str, blobs: &Path, upstream: SocketAddr) -> Result<SocketAddr> {
    // The port is free now; another process is unlikely to take it before the gateway does.
    let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
    let text = configuration((address, upstream), database_url, blobs, &folder.path().join("journal"));
    fs::write(folder.path().join("tollgate.toml"), text)?;
    Ok(address)
}

/// Returns the configuration. The load of one run writes more records than a workspace may by default.
fn configuration(
    (address, upstream): (SocketAddr, SocketAddr),
    database_url: &str,
    blobs: &Path,
    journal: &Path,
) -> String {
    let (blobs, journal) = (blobs.display(), journal.display());
    let mut text = format!(
        r#"[server]
listen = "{address}"
drain_ms = 0
[storage]
url = "{database_url}"
[journal]
path = "{journal}"
[blobs]
url = "file:{blobs}"
[limits]
max_file_bytes = 8589934592
workspace_quota_bytes = 109951162777600
workspace_record_bytes_per_day = 0
[egress]
allow_private_addresses = true
"#
    );
    for Outbound { wire, model, base, endpoint_keys, .. } in OUTBOUND {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            r#"[[providers]]
slug = "bench-{wire}"
name = "Bench"
wire = "{wire}"
base_url = "http://{upstream}{base}"
[[endpoints]]
model = "{model}"
provider = "bench-{wire}"
upstream_model = "decider-1"
input_usd_per_million_tokens = "0.042"
output_usd_per_million_tokens = "0"
{endpoint_keys}"#
        );
    }
    text
}

fn text(document: &Value, member: &str) -> Result<String> {
    document
        .get(member)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .with_context(|| format!("no {member} in {document}"))
}
