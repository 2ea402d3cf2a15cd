//! A folder of its own for one gateway: configuration, database and blobs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{Server, binary};

/// A gateway's folder and configuration. Any number of processes can serve it, one after the other or at once.
#[derive(Debug)]
pub struct Instance {
    dir: TempDir,
    listen: SocketAddr,
    env: Vec<(String, String)>,
}

/// A key as the command line made it.
#[derive(Debug, Clone)]
pub struct Key {
    /// What goes into the `Authorization` header.
    pub secret: String,
    /// The hash of the secret.
    pub hash: String,
    /// Its name for as long as it exists.
    pub id: String,
}

impl Instance {
    /// `toml` is the configuration but for where to listen and where to store, which environment variables say.
    pub fn new(toml: &str) -> Result<Self> {
        let dir = TempDir::new()?;
        std::fs::write(dir.path().join("test.toml"), toml)?;
        let listen = free_address()?;
        let at = |name: &str| dir.path().join(name).display().to_string();
        let env = [
            ("TOLLGATE__SERVER__LISTEN", listen.to_string()),
            ("TOLLGATE__STORAGE__URL", format!("sqlite://{}", at("data/tollgate.db"))),
            ("TOLLGATE__BLOBS__URL", format!("file:{}", at("data/blobs"))),
            // No load balancer has to learn of a stop.
            ("TOLLGATE__SERVER__DRAIN_MS", "20".to_owned()),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { dir, listen, env })
    }

    /// An environment variable of every process started from now on.
    pub fn set_env(&mut self, name: &str, value: impl Into<String>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The database's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("data/tollgate.db")
    }

    /// The blob store's folder.
    pub fn blobs(&self) -> PathBuf {
        self.path().join("data/blobs")
    }

    /// Rewrites the configuration for the next start.
    pub fn configure(&self, toml: &str) -> Result<()> {
        Ok(std::fs::write(self.path().join("test.toml"), toml)?)
    }

    /// Starts `tollgate serve` and waits until it is ready.
    pub async fn serve(&self) -> Result<Server> {
        let mut command = self.command()?;
        command.arg("serve");
        Server::start(command, self.listen, self.path()).await
    }

    /// Starts the server with its log on `stderr`, such as the end of a pipe.
    pub async fn serve_logging_to(&self, stderr: impl Into<Stdio>) -> Result<Server> {
        let mut command = self.command()?;
        command.arg("serve");
        Server::start_logging_to(stderr.into(), command, self.listen, self.path()).await
    }

    /// Starts a second server on the same stores, at an address of its own.
    pub async fn serve_beside(&self) -> Result<Server> {
        let listen = free_address()?;
        let mut command = self.command()?;
        command.env("TOLLGATE__SERVER__LISTEN", listen.to_string()).arg("serve");
        Server::start(command, listen, self.path()).await
    }

    /// Starts the server from a shell, after `limits` (such as `ulimit -f 100`).
    pub async fn serve_under(&self, limits: &str) -> Result<Server> {
        let binary = binary::tollgate()?;
        let mut command = Command::new("/bin/sh");
        let script = format!("{limits}; exec '{}' serve --config test.toml", binary.display());
        self.prepare(&mut command).args(["-c", &script]);
        Server::start(command, self.listen, self.path()).await
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command()?.args(arguments).output().await?)
    }

    /// Runs a command with `--json`, on a database that is created if there is none; it must succeed and print one JSON
    /// document and nothing else.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        if !self.database().exists() {
            ensure!(self.run(&["migrate", "up"]).await?.status.success(), "the database was not created");
        }
        let output = self.command()?.args(arguments).arg("--json").output().await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} failed: {stderr}");
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{arguments:?} printed {:?}", String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs a command that must fail with one sentence on standard error and nothing on standard output; returns it.
    pub async fn refused(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments).await?;
        ensure!(!output.status.success(), "{arguments:?} succeeded");
        ensure!(output.status.code().is_some(), "{arguments:?} died of a signal");
        ensure!(output.stdout.is_empty(), "{arguments:?} failed and printed to standard output");
        let said = String::from_utf8(output.stderr)?.trim_end().to_owned();
        ensure!(!said.is_empty(), "{arguments:?} failed without a word");
        ensure!(!said.contains("panicked"), "{arguments:?} panicked: {said}");
        Ok(said)
    }

    /// Runs a command without the harness's `--config`.
    pub async fn run_bare(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(binary::tollgate()?);
        Ok(self.prepare(&mut command).args(arguments).output().await?)
    }

    /// As [`Instance::json`], with a file of the instance's folder as standard input.
    pub async fn piped(&self, arguments: &[&str], input: &str) -> Result<Value> {
        let input = std::fs::File::open(self.path().join(input))?;
        let output = self.command()?.args(arguments).arg("--json").stdin(input).output().await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Starts a server that must not come up; returns the sentence that it ends with.
    pub async fn refused_serving(&self) -> Result<String> {
        let output = tokio::time::timeout(Duration::from_secs(30), self.run(&["serve"])).await??;
        ensure!(!output.status.success(), "it came up");
        let said = String::from_utf8(output.stderr)?;
        ensure!(!said.contains("panicked"), "{said}");
        Ok(format!("{}{said}", String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs `tollgate demo --exit` in a folder.
    pub async fn demo(folder: &Path) -> Result<Output> {
        let mut command = Command::new(binary::tollgate()?);
        command.args(["demo", "--exit"]).env_clear().current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
        Ok(tokio::time::timeout(Duration::from_mins(1), command.output()).await??)
    }

    /// Makes an inference key of the default workspace.
    pub async fn inference_key(&self) -> Result<Key> {
        self.key(&["--name", "tests"]).await
    }

    /// Makes a management key.
    pub async fn management_key(&self) -> Result<Key> {
        self.key(&["--name", "tests", "--management"]).await
    }

    /// Makes a key with options of `key create`.
    pub async fn key(&self, options: &[&str]) -> Result<Key> {
        let made = self.json(&[&["key", "create"], options].concat()).await?;
        let text = |name: &str| made[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {made}"));
        Ok(Key { secret: text("key")?, hash: text("hash")?, id: text("id")? })
    }

    /// Makes a guardrail, in the default workspace unless `options` say otherwise; returns its id.
    pub async fn guardrail(&self, options: &[&str]) -> Result<String> {
        let made = self.json(&[&["guardrail", "create", "--name", "tests"], options].concat()).await?;
        made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
    }

    /// Makes a workspace; returns its id.
    pub async fn workspace(&self, name: &str) -> Result<String> {
        let made = self.json(&["workspace", "create", "--name", name]).await?;
        made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
    }

    /// Puts a file into a container by the command line; returns its id.
    pub async fn put(&self, container: &str, path: &str, content: &[u8]) -> Result<String> {
        let local = self.path().join("upload");
        std::fs::write(&local, content)?;
        let local = local.display().to_string();
        let made = self.json(&["container", "put", container, path, &local]).await?;
        made["file_id"].as_str().map(str::to_owned).with_context(|| format!("no file_id in {made}"))
    }

    /// Where a container's file lies, as a sandbox runtime would write it.
    pub fn container_file(&self, workspace: &str, container: &str, path: &str) -> Result<PathBuf> {
        let file = self.blobs().join("containers").join(workspace).join(container).join(path);
        std::fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
        Ok(file)
    }

    /// The id of the default workspace.
    pub async fn default_workspace(&self) -> Result<String> {
        let made = self.json(&["key", "create", "--name", "to tell the workspace"]).await?;
        made["workspace_id"].as_str().map(str::to_owned).with_context(|| format!("no workspace_id in {made}"))
    }

    /// The documents' blobs on disk.
    pub fn document_blobs(&self) -> Result<Vec<PathBuf>> {
        files_below(&self.blobs().join("documents"))
    }

    fn command(&self) -> Result<Command> {
        let mut command = Command::new(binary::tollgate()?);
        self.prepare(&mut command).args(["--config", "test.toml"]);
        Ok(command)
    }

    /// The environment of the machine, a proxy above all, must not reach what is tested.
    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("HOME", self.path())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
    }
}

/// Every file below a folder; none where there is no such folder.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// A loopback address that nobody listened at a moment ago.
pub fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
