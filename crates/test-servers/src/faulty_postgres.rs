//! A PostgreSQL server that a test restarts, crashes, freezes and replaces by its standby.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::ports;
use crate::postgres::{programs, run};
use crate::process::{children, has_ended, signal};
use crate::user::User;

const SUPERUSER: &str = "tollgate";
/// The only database.
const DATABASE: &str = "chaos";
const START_TIMEOUT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// Waits for a line or the end of its input. A line stops the server in the named mode; the end of the input, which
/// comes however the test process ends, also wakes a frozen server and removes the folder.
const GUARD: &str = r#"folder=$1; shift
"$@" & server=$!
echo $server > "$folder/pid"
how=
read -r how
kill -CONT "$server" $(cat "/proc/$server/task/$server/children" 2>/dev/null) 2>/dev/null
if [ "$how" = immediate ]; then kill -QUIT "$server"; else kill -INT "$server"; fi
wait "$server"
[ -n "$how" ] || rm -rf "$folder""#;

/// The way in which the server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Connections end, open transactions are rolled back.
    Fast,
    /// A crash: the next start recovers from the write-ahead log.
    Immediate,
}

/// A server with one database in a temporary folder, which it removes at the end.
pub struct FaultyPostgres {
    programs: PathBuf,
    folder: PathBuf,
    user: User,
    port: u16,
    guard: Option<Guard>,
}

struct Guard {
    shell: Child,
    input: Option<ChildStdin>,
}

impl FaultyPostgres {
    /// Starts a server and creates its database.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or the server does not start.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_below(&std::env::temp_dir())
    }

    /// Starts a server whose folder is in another one, such as a small disk, and creates its database. The user of the
    /// server must have the right to write there.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or the server does not start.
    pub fn start_below(parent: &Path) -> anyhow::Result<Self> {
        let mut server = Self::stopped_below(parent)?;
        let mut initdb = server.tool("initdb");
        initdb.args(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(server.user.run(&mut initdb))?;
        server.launch()?;
        run(server.client("createdb").arg(DATABASE))?;
        Ok(server)
    }

    /// Starts an asynchronous standby of a server, whose folder is in another one, as in [`FaultyPostgres::start_below`].
    /// It reads from the server through `network`, the address of the server or of a relay to it.
    ///
    /// # Errors
    /// The server does not run, or the standby does not start.
    pub fn start_standby_below(parent: &Path, network: SocketAddr) -> anyhow::Result<Self> {
        let mut standby = Self::stopped_below(parent)?;
        let mut copy = standby.tool("pg_basebackup");
        copy.args(["-h", &network.ip().to_string(), "-p", &network.port().to_string(), "-U", SUPERUSER]);
        // The copy is a standby of the server that it was read from.
        copy.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]);
        run(standby.user.run(&mut copy))?;
        standby.launch()?;
        Ok(standby)
    }

    /// Waits until this standby has everything that was committed on its server when it was called.
    ///
    /// # Errors
    /// It is not there within a minute, or one of the servers cannot be reached.
    pub fn wait_for(&self, server: &Self) -> anyhow::Result<()> {
        let position = server.value("SELECT pg_current_wal_insert_lsn()")?;
        let is_there = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn");
        for _ in 0..START_TIMEOUT.as_millis() / POLL.as_millis() {
            if self.value(&is_there)? == "t" {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("the standby is behind {position} after {} s: {}", START_TIMEOUT.as_secs(), self.log())
    }

    /// Turns this standby into a server that takes writes, with what it has received.
    ///
    /// # Errors
    /// It is no standby, or is not promoted within a minute.
    pub fn promote(&self) -> anyhow::Result<()> {
        let promoted = self.value(&format!("SELECT pg_promote(true, {})", START_TIMEOUT.as_secs()))?;
        ensure!(promoted == "t", "the standby was not promoted: {}", self.log());
        Ok(())
    }

    /// Creates the folder of a server that is not started.
    fn stopped_below(parent: &Path) -> anyhow::Result<Self> {
        let (programs, user) = (programs()?, User::unprivileged()?);
        let folder = TempDir::with_prefix_in("postgres-", parent).context("no temporary folder")?.keep();
        user.own(&folder)?;
        Ok(Self { programs, folder, user, port: ports::free()?, guard: None })
    }

    /// Returns a program that fills the folder of the data.
    fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(&self.folder).arg("-D").arg(self.folder.join("data"));
        command
    }

    /// Returns the address of the server.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of the database at an address, such as that of a relay.
    pub fn url_at(&self, address: &str) -> String {
        format!("postgres://{SUPERUSER}@{address}/{DATABASE}")
    }

    /// Stops the server.
    ///
    /// # Errors
    /// The server is stopped, or its guard has ended.
    pub fn stop(&mut self, mode: StopMode) -> anyhow::Result<()> {
        let mut guard = self.guard.take().context("the server is stopped")?;
        let mut input = guard.input.take().context("the guard has no input")?;
        writeln!(input, "{}", if mode == StopMode::Fast { "fast" } else { "immediate" })?;
        drop(input);
        guard.shell.wait()?;
        Ok(())
    }

    /// Ends every process of the server with `SIGKILL`. Its data remains, and its next start recovers.
    ///
    /// # Errors
    /// The server does not run.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.freeze()?;
        let server = self.pid()?;
        let processes = [children(server)?, vec![server]].concat();
        signal("KILL", &processes)?;
        // The guard only waits for what has ended.
        self.stop(StopMode::Fast)
    }

    /// Starts the server again if it has ended by itself, and waits until it accepts connections.
    ///
    /// # Errors
    /// The server does not start, or recovers for longer than a minute.
    pub fn revive(&mut self) -> anyhow::Result<()> {
        for _ in 0..START_TIMEOUT.as_millis() / POLL.as_millis() {
            if self.guard.is_some() && has_ended(self.pid()?) {
                self.stop(StopMode::Fast)?;
                return self.launch();
            }
            if self.client("pg_isready").arg("-q").status()?.success() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("PostgreSQL does not recover: {}", self.log())
    }

    /// Starts a stopped server, on the same port and data.
    ///
    /// # Errors
    /// The server does not start.
    pub fn launch(&mut self) -> anyhow::Result<()> {
        ensure!(self.guard.is_none(), "the server runs");
        self.guard = Some(self.start_guard()?);
        let attempts = START_TIMEOUT.as_millis() / POLL.as_millis();
        for _ in 0..attempts {
            if self.client("pg_isready").arg("-q").status()?.success() {
                return Ok(());
            }
            std::thread::sleep(POLL);
            // The system may take a moment to release the memory of a killed server, and the new one ends meanwhile.
            if self.pid().is_ok_and(has_ended) {
                self.stop(StopMode::Fast)?;
                self.guard = Some(self.start_guard()?);
            }
        }
        bail!("PostgreSQL did not start within {} s: {}", START_TIMEOUT.as_secs(), self.log())
    }

    /// Suspends every process of the server. The server continues at [`FaultyPostgres::resume`], and when this process
    /// ends.
    ///
    /// # Errors
    /// The server does not run.
    pub fn freeze(&self) -> anyhow::Result<()> {
        let server = self.pid()?;
        // The first process creates the others: once it is suspended, their number does not grow.
        signal("STOP", &[server])?;
        signal("STOP", &children(server)?)
    }

    /// Continues a frozen server.
    ///
    /// # Errors
    /// The server does not run.
    pub fn resume(&self) -> anyhow::Result<()> {
        let server = self.pid()?;
        signal("CONT", &children(server)?)?;
        signal("CONT", &[server])
    }

    /// Runs statements and returns the rows of their results, split into columns.
    ///
    /// # Errors
    /// The server rejects a statement, or cannot be reached.
    pub fn query(&self, sql: &str) -> anyhow::Result<Vec<Vec<String>>> {
        let mut psql = self.client("psql");
        psql.env("PGCONNECT_TIMEOUT", "5").args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]);
        let output = psql.args(["-d", DATABASE, "-c", sql]).output().context("psql did not start")?;
        ensure!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Writes the database to a file, as SQL.
    ///
    /// # Errors
    /// The server cannot be reached, or the file cannot be written.
    pub fn dump(&self, to: &Path) -> anyhow::Result<()> {
        run(self.client("pg_dump").arg("-f").arg(to).arg(DATABASE))
    }

    /// Returns the only value of a query.
    fn value(&self, sql: &str) -> anyhow::Result<String> {
        self.query(sql)?.pop().and_then(|mut row| row.pop()).with_context(|| format!("{sql} returned nothing"))
    }

    fn start_guard(&self) -> anyhow::Result<Guard> {
        let _ = std::fs::remove_file(self.folder.join("pid"));
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]).arg(&self.folder).arg(self.programs.join("postgres"));
        command.arg("-D").arg(self.folder.join("data"));
        for setting in self.settings() {
            command.args(["-c", &setting]);
        }
        // A group of its own: an interrupt from the terminal ends the test process first, which then stops the server.
        command.process_group(0).current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let mut shell = self.user.run(&mut command).spawn().context("PostgreSQL did not start")?;
        let input = shell.stdin.take();
        Ok(Guard { shell, input })
    }

    fn settings(&self) -> Vec<String> {
        vec![
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", self.folder.display()),
            "max_connections=200".to_owned(),
            // The machine keeps running: writes survive every end of the server.
            "fsync=off".to_owned(),
            "full_page_writes=off".to_owned(),
            "shared_buffers=64MB".to_owned(),
            // The log of a run stays small, so that it fits on a small disk.
            "min_wal_size=32MB".to_owned(),
            "max_wal_size=96MB".to_owned(),
        ]
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["-h", "127.0.0.1", "-U", SUPERUSER, "-p", &self.port.to_string()]);
        command
    }

    fn pid(&self) -> anyhow::Result<u32> {
        ensure!(self.guard.is_some(), "the server is stopped");
        let text = std::fs::read_to_string(self.folder.join("pid")).context("no process id of the server")?;
        Ok(text.trim().parse()?)
    }

    /// Returns true if the log of the server contains a text.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn has_logged(&self, text: &str) -> anyhow::Result<bool> {
        Ok(std::fs::read_to_string(self.folder.join("log")).context("no log of the server")?.contains(text))
    }

    fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

impl Drop for FaultyPostgres {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            // The end of the input wakes and stops the server and removes its folder.
            drop(guard.input.take());
            drop(guard.shell.wait());
        } else {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::wait_for_state;

    #[test]
    fn server_keeps_rows_across_stops_and_freezes() {
        let mut server = FaultyPostgres::start().unwrap_or_else(|error| panic!("{error:#}"));
        server.query("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)").unwrap();
        for mode in [StopMode::Fast, StopMode::Immediate] {
            server.stop(mode).unwrap();
            assert!(server.query("SELECT n FROM t").is_err(), "the server is stopped");
            server.launch().unwrap_or_else(|error| panic!("{error:#}"));
            assert_eq!(server.query("SELECT n, n + 1 FROM t").unwrap(), [["7", "8"]]);
        }
        server.freeze().unwrap();
        let process = server.pid().unwrap();
        wait_for_state(process, &['T']);
        for child in children(process).unwrap() {
            // The child of a closed connection may have ended, and waits for its parent.
            wait_for_state(child, &['T', 'Z']);
        }
        server.resume().unwrap();
        assert_eq!(server.query("SELECT n FROM t").unwrap(), [["7"]]);
        let dump = server.folder.join("dump.sql");
        server.dump(&dump).unwrap();
        assert!(std::fs::read_to_string(dump).unwrap().contains("CREATE TABLE public.t"));
        server.freeze().unwrap();
        let (folder, port) = (server.folder.clone(), server.port);
        drop(server);
        assert!(!folder.exists(), "the folder of a frozen server is removed");
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "the server is gone");
    }
    #[test]
    fn server_that_was_killed_or_ended_by_itself_starts_again() {
        let mut server = FaultyPostgres::start().unwrap_or_else(|error| panic!("{error:#}"));
        server.query("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)").unwrap();
        server.revive().unwrap_or_else(|error| panic!("a running server: {error:#}"));
        let first = server.pid().unwrap();
        server.kill().unwrap();
        assert!(server.query("SELECT n FROM t").is_err(), "the server is killed");
        server.launch().unwrap_or_else(|error| panic!("{error:#}"));
        let second = server.pid().unwrap();
        assert_ne!(first, second);
        signal("QUIT", &[second]).unwrap();
        wait_for_state(second, &['Z']);
        server.revive().unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(server.query("SELECT n FROM t").unwrap(), [["7"]]);
    }

    #[test]
    fn promoted_standby_has_what_it_received() {
        let mut server = FaultyPostgres::start().unwrap_or_else(|error| panic!("{error:#}"));
        server.query("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)").unwrap();
        let network = server.address().parse().unwrap();
        let standby = FaultyPostgres::start_standby_below(&std::env::temp_dir(), network)
            .unwrap_or_else(|error| panic!("{error:#}"));
        server.query("INSERT INTO t VALUES (8)").unwrap();
        standby.wait_for(&server).unwrap_or_else(|error| panic!("{error:#}"));
        assert_eq!(standby.query("SELECT n FROM t").unwrap(), [["7"], ["8"]]);
        assert!(standby.query("INSERT INTO t VALUES (9)").is_err(), "a standby takes no writes");
        server.kill().unwrap();
        standby.promote().unwrap_or_else(|error| panic!("{error:#}"));
        standby.query("INSERT INTO t VALUES (9)").unwrap();
        assert_eq!(standby.query("SELECT n FROM t").unwrap(), [["7"], ["8"], ["9"]]);
        assert!(standby.promote().is_err(), "it is no standby any more");
    }
}
