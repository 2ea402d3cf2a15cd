//! A temporary installation of a gateway: configuration, database and blobs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{Relay, Server, binary, postgres};

/// A gateway's folder and configuration. Several processes can serve it, one after another or concurrently.
#[derive(Debug)]
pub struct Instance {
    dir: TempDir,
    listen: SocketAddr,
    env: Vec<(String, String)>,
    /// The URL of its database on a server; `None` for a file.
    postgres: Option<String>,
}

/// A key created by the command line.
#[derive(Debug, Clone)]
pub struct Key {
    /// The secret for the `Authorization` header.
    pub secret: String,
    /// The hash of the secret.
    pub hash: String,
    /// The id of the key.
    pub id: String,
}

impl Instance {
    /// Creates an installation. `toml` is the configuration without addresses and stores, which environment variables
    /// set.
    pub fn new(toml: &str) -> Result<Self> {
        let mut instance = Self::on_file(toml)?;
        if let Some(url) = postgres::chosen_database()? {
            instance.use_postgres(url);
        }
        Ok(instance)
    }

    /// Creates an installation whose database is a file in every test run.
    pub fn on_file(toml: &str) -> Result<Self> {
        let dir = TempDir::new()?;
        std::fs::write(dir.path().join("test.toml"), toml)?;
        let listen = free_address()?;
        let at = |name: &str| dir.path().join(name).display().to_string();
        let env = [
            ("TOLLGATE__SERVER__LISTEN", listen.to_string()),
            ("TOLLGATE__STORAGE__URL", format!("sqlite://{}", at("data/tollgate.db"))),
            ("TOLLGATE__BLOBS__URL", format!("file:{}", at("data/blobs"))),
            // There is no load balancer that has to notice a stop.
            ("TOLLGATE__SERVER__DRAIN_MS", "20".to_owned()),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { dir, listen, env, postgres: None })
    }

    /// Creates an empty database on the PostgreSQL server of this run; returns its URL.
    pub fn create_postgres_database() -> Result<String> {
        postgres::create_database()
    }

    /// Uses a database on a PostgreSQL server for every process started afterwards.
    pub fn move_to_postgres(&mut self, url: &str) {
        self.use_postgres(url.to_owned());
    }

    /// Uses a database file for every process started afterwards.
    pub fn move_to_file(&mut self, file: &Path) {
        self.set_env("TOLLGATE__STORAGE__URL", format!("sqlite://{}", file.display()));
        self.postgres = None;
    }

    /// Starts a command without waiting for its end.
    pub fn spawn(&self, arguments: &[&str]) -> Result<Child> {
        Ok(self.command()?.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
    }

    /// Creates an installation whose database is on a PostgreSQL server, behind a relay.
    pub async fn behind_relay(toml: &str) -> Result<(Self, Relay)> {
        let url = postgres::create_database()?;
        let (scheme, rest) = url.split_once('@').context("a URL without a user")?;
        let (server, database) = rest.split_once('/').context("a URL without a database")?;
        let relay = Relay::start(server.parse()?).await?;
        let instance = Self::on_database(toml, format!("{scheme}@{}/{database}", relay.address()))?;
        Ok((instance, relay))
    }

    /// Creates an installation whose database is on the PostgreSQL server of this run.
    pub fn on_postgres(toml: &str) -> Result<Self> {
        Self::on_database(toml, postgres::create_database()?)
    }

    /// Creates an installation on a database of another PostgreSQL server.
    pub fn on_database(toml: &str, url: String) -> Result<Self> {
        let mut instance = Self::new(toml)?;
        instance.use_postgres(url);
        Ok(instance)
    }

    fn use_postgres(&mut self, url: String) {
        self.set_env("TOLLGATE__STORAGE__URL", url.clone());
        let journal = self.path().join("data/tollgate-journal").display().to_string();
        self.set_env("TOLLGATE__JOURNAL__PATH", journal);
        self.postgres = Some(url);
    }

    /// Sets an environment variable for every process started afterwards.
    pub fn set_env(&mut self, name: &str, value: impl Into<String>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the database's file.
    pub fn database(&self) -> PathBuf {
        self.path().join("data/tollgate.db")
    }

    /// Returns the URL of its database, if that is on a server.
    pub fn postgres(&self) -> Option<&str> {
        self.postgres.as_deref()
    }

    /// Returns the blob store's folder.
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

    /// Starts a server that applies no migrations.
    pub async fn serve_without_migrating(&self) -> Result<Server> {
        self.serve_with(&["--no-migrate"]).await
    }

    /// Starts a server with options of `serve`.
    pub async fn serve_with(&self, options: &[&str]) -> Result<Server> {
        let mut command = self.command()?;
        command.arg("serve").args(options);
        Server::start(command, self.listen, self.path()).await
    }

    /// Starts the server with its log on `stderr`, such as the end of a pipe.
    pub async fn serve_logging_to(&self, stderr: impl Into<Stdio>) -> Result<Server> {
        let mut command = self.command()?;
        command.arg("serve");
        Server::start_logging_to(stderr.into(), command, self.listen, self.path()).await
    }

    /// Starts a second server on the same stores, at another address.
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

    /// Runs a command from a shell, after `limits`, and waits for its end.
    pub async fn run_under(&self, limits: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new("/bin/sh");
        let script = format!("{limits}; exec '{}' --config test.toml \"$@\"", binary::tollgate()?.display());
        self.prepare(&mut command).args(["-c", &script, "sh"]).args(arguments);
        Ok(command.output().await?)
    }

    /// Runs a command and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command()?.args(arguments).output().await?)
    }

    /// Runs a command with `--json`, on a database that is created if it is missing; it must succeed and print exactly
    /// one JSON document. Returns its [`record`].
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        // Without a server `migrate up` does nothing the second time.
        if self.postgres.is_some() || !self.database().exists() {
            ensure!(self.run(&["migrate", "up"]).await?.status.success(), "the database was not created");
        }
        let output = self.command()?.args(arguments).arg("--json").output().await?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} failed: {stderr}");
        let printed = serde_json::from_slice(&output.stdout);
        printed
            .map(record)
            .with_context(|| format!("{arguments:?} printed {:?}", String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs a command on a pseudo-terminal; returns everything that it printed.
    pub async fn run_on_terminal(&self, arguments: &[&str]) -> Result<String> {
        let line = format!("'{}' --config test.toml {}", binary::tollgate()?.display(), arguments.join(" "));
        let mut command = Command::new("script");
        let output = self.prepare(&mut command).args(["-qec", &line, "/dev/null"]).output().await;
        let output = output.context("`script` of util-linux runs commands on a pseudo-terminal")?;
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a command that must fail with one sentence on standard error and no standard output; returns the sentence.
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

    /// Runs a command like [`Instance::json`], with a file of the installation as standard input.
    pub async fn piped(&self, arguments: &[&str], input: &str) -> Result<Value> {
        let input = std::fs::File::open(self.path().join(input))?;
        let output = self.command()?.args(arguments).arg("--json").stdin(input).output().await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(record(serde_json::from_slice(&output.stdout)?))
    }

    /// Starts a server that must fail to start; returns its error message.
    pub async fn refused_serving(&self) -> Result<String> {
        let output = tokio::time::timeout(Duration::from_mins(2), self.run(&["serve"])).await??;
        ensure!(!output.status.success(), "it came up");
        let said = String::from_utf8(output.stderr)?;
        ensure!(!said.contains("panicked"), "{said}");
        Ok(format!("{}{said}", String::from_utf8_lossy(&output.stdout)))
    }

    /// Runs `tollgate demo` with options in a folder, to its end.
    pub async fn demo(folder: &Path, options: &[&str]) -> Result<Output> {
        let mut command = Self::demo_command(folder, options)?;
        Ok(tokio::time::timeout(Duration::from_mins(1), command.output()).await??)
    }

    /// Returns `tollgate demo` with options in a folder, ready to be started.
    pub fn demo_command(folder: &Path, options: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary::tollgate()?);
        command.arg("demo").args(options).env_clear().current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
        Ok(command)
    }

    /// Creates an inference key of the default workspace.
    pub async fn inference_key(&self) -> Result<Key> {
        self.key(&["--name", "tests"]).await
    }

    /// Creates a management key.
    pub async fn management_key(&self) -> Result<Key> {
        self.key(&["--name", "tests", "--management"]).await
    }

    /// Creates a key with options of `key create`. Its name may be that of another key.
    pub async fn key(&self, options: &[&str]) -> Result<Key> {
        let made = self.json(&[&["key", "create", "--allow-duplicate"], options].concat()).await?;
        let text = |name: &str| made[name].as_str().map(str::to_owned).with_context(|| format!("no {name} in {made}"));
        Ok(Key { secret: text("key")?, hash: text("hash")?, id: text("id")? })
    }

    /// Creates a guardrail, by default in the default workspace; returns its id.
    pub async fn guardrail(&self, options: &[&str]) -> Result<String> {
        let made = self.json(&[&["guardrail", "create", "--name", "tests"], options].concat()).await?;
        made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
    }

    /// Creates a workspace, whose name may be that of another one; returns its id.
    pub async fn workspace(&self, name: &str) -> Result<String> {
        let made = self.json(&["workspace", "create", "--name", name, "--allow-duplicate"]).await?;
        made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
    }

    /// Puts a file into a container with the command line; returns its id.
    pub async fn put(&self, container: &str, path: &str, content: &[u8]) -> Result<String> {
        let local = self.path().join("upload");
        std::fs::write(&local, content)?;
        let local = local.display().to_string();
        let made = self.json(&["container", "put", container, path, &local]).await?;
        made["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {made}"))
    }

    /// Returns the path of a container's file on disk, where a sandbox runtime would write it.
    pub fn container_file(&self, workspace: &str, container: &str, path: &str) -> Result<PathBuf> {
        let file = self.blobs().join("containers").join(workspace).join(container).join(path);
        std::fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
        Ok(file)
    }

    /// Returns the id of the default workspace.
    pub async fn default_workspace(&self) -> Result<String> {
        let made = self.json(&["key", "create"]).await?;
        made["workspace_id"].as_str().map(str::to_owned).with_context(|| format!("no workspace_id in {made}"))
    }

    /// Returns the blobs of documents on disk.
    pub fn document_blobs(&self) -> Result<Vec<PathBuf>> {
        files_below(&self.blobs().join("documents"))
    }

    fn command(&self) -> Result<Command> {
        let mut command = Command::new(binary::tollgate()?);
        self.prepare(&mut command).args(["--config", "test.toml"]);
        Ok(command)
    }

    /// Removes the machine's environment, such as proxies, from the command.
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

/// Returns the record of a response: the members of `data`, and those beside it. Lists stay as they are.
pub fn record(mut document: Value) -> Value {
    if let Some(members) = document.as_object_mut()
        && let Some(Value::Object(record)) = members.get("data").cloned()
    {
        members.remove("data");
        members.extend(record);
    }
    document
}

/// Returns every file below a folder; none if the folder is missing.
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

/// Returns a loopback address with a currently free port.
pub fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
