//! A PostgreSQL server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::certificates::{Authority, Certificate};
use crate::guarded::Guarded;
use crate::ports;
use crate::user::User;

/// The folders of Debian's packages, one per version.
const PACKAGES: &str = "/usr/lib/postgresql";
/// The longest start.
const START_TIMEOUT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
/// The superuser, who needs no password.
pub(crate) const SUPERUSER: &str = "tollgate";
/// The superuser of an encrypted server who identifies by a certificate.
pub const CERTIFIED_USER: &str = "certified";
/// The rules of an encrypted server.
const HBA: &str = "hostssl all certified 127.0.0.1/32 cert\nhostssl all tollgate 127.0.0.1/32 trust\n";

/// A server in a temporary folder, which it removes when it stops.
pub struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
    databases: AtomicU32,
    /// Stopped with this value.
    _server: Guarded,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or the server does not start.
    pub fn start() -> anyhow::Result<Self> {
        // A test ends no machine: what the server wrote survives the server.
        Self::start_with(|_, _| Ok(vec!["fsync=off".to_owned(), "full_page_writes=off".to_owned()]))
    }

    /// Starts a server that keeps its promises through a power failure, as one in production does.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub fn start_durable() -> anyhow::Result<Self> {
        Self::start_with(|_, _| Ok(Vec::new()))
    }

    /// Starts a server that accepts encrypted connections only. Its certificate is for the host `localhost`. The user
    /// [`CERTIFIED_USER`] needs a certificate of the authority.
    ///
    /// # Errors
    /// PostgreSQL or OpenSSL is not installed, or the server does not start.
    pub fn start_encrypted(authority: &Authority) -> anyhow::Result<Self> {
        let issued = authority.issue("localhost")?;
        let server = Self::start_with(|folder, user| {
            let copy = |file: &Path| Certificate::copy(file, folder, user).map(|path| path.display().to_string());
            let rules = folder.join("hba.conf");
            std::fs::write(&rules, HBA)?;
            Ok(vec![
                "ssl=on".to_owned(),
                format!("ssl_cert_file={}", copy(&issued.certificate)?),
                format!("ssl_key_file={}", copy(&issued.key)?),
                format!("ssl_ca_file={}", copy(&authority.certificate())?),
                format!("hba_file={}", rules.display()),
            ])
        })?;
        run(server.client("createuser").args(["--superuser", CERTIFIED_USER]))?;
        Ok(server)
    }

    /// Starts a server with more settings, which may name files in its folder.
    fn start_with(more: impl FnOnce(&Path, User) -> anyhow::Result<Vec<String>>) -> anyhow::Result<Self> {
        let programs = programs()?;
        let user = User::unprivileged()?;
        let folder = TempDir::with_prefix("postgres-").context("no temporary folder")?.keep();
        user.own(&folder)?;
        let data = folder.join("data");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.current_dir(&folder).arg("-D").arg(&data);
        // Without the C locale the order of texts would depend on the machine.
        initdb.args(["-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(user.run(&mut initdb))?;
        let port = ports::free()?;
        let more = more(&folder, user)?;
        let settings = [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", folder.display()),
            "max_connections=400".to_owned(),
            "shared_buffers=64MB".to_owned(),
        ];
        let arguments: Vec<String> = ["-D".to_owned(), data.display().to_string()]
            .into_iter()
            .chain(settings.into_iter().chain(more).flat_map(|setting| ["-c".to_owned(), setting]))
            .collect();
        let server = Guarded::start(&folder, &programs.join("postgres"), &arguments, user, "INT")?;
        let server = Self { programs, data, port, databases: AtomicU32::new(0), _server: server };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Creates an empty database, and returns its URL.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn create_database(&self) -> anyhow::Result<String> {
        self.create(&[])
    }

    /// Creates a copy of a database without connections, and returns its URL.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn copy_database(&self, url: &str) -> anyhow::Result<String> {
        let name = url.rsplit('/').next().unwrap_or_default();
        self.create(&["-T", name])
    }

    /// Returns the rows of a query, one line each, their columns separated by `|`.
    ///
    /// # Errors
    /// The server rejects it.
    pub fn query(&self, url: &str, sql: &str) -> anyhow::Result<String> {
        let mut command = Command::new(self.programs.join("psql"));
        let output = command.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url]).output()?;
        ensure!(output.status.success(), "psql: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    /// Returns the id of the server's first process, the parent of all others.
    ///
    /// # Errors
    /// The server has ended.
    pub fn process_id(&self) -> anyhow::Result<u32> {
        let path = self.data.join("postmaster.pid");
        let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        text.lines().next().and_then(|line| line.parse().ok()).context("no process id")
    }

    /// Returns the loopback port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn create(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        run(self.client("createdb").args(arguments).arg(&name))?;
        Ok(format!("postgres://{SUPERUSER}@127.0.0.1:{}/{name}", self.port))
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["-h", "127.0.0.1", "-U", SUPERUSER, "-p", &self.port.to_string()]);
        command
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let attempts = START_TIMEOUT.as_millis() / POLL.as_millis();
        for _ in 0..attempts {
            if self.client("pg_isready").arg("-q").status()?.success() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("PostgreSQL did not start within {} s", START_TIMEOUT.as_secs())
    }
}

/// Returns the folder of the newest installed version.
pub(crate) fn programs() -> anyhow::Result<PathBuf> {
    let versions = std::fs::read_dir(PACKAGES).into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin")).filter(|folder| is_complete(folder));
    folders.max().with_context(|| {
        format!("these tests need PostgreSQL below {PACKAGES}: `apt-get install postgresql`, or `cargo xtask test`")
    })
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "createdb", "createuser", "pg_isready", "psql"]
        .iter()
        .all(|program| folder.join(program).is_file())
}

pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{} did not start", command.get_program().display()))?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {error}", command.get_program().display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_creates_and_copies_databases_and_stops() {
        let server = Postgres::start().unwrap_or_else(|error| panic!("{error:#}"));
        let first = server.create_database().unwrap_or_else(|error| panic!("{error:#}"));
        let copy = server.copy_database(&first).unwrap_or_else(|error| panic!("{error:#}"));
        assert_ne!(first, copy);
        assert_eq!(server.query(&copy, "SELECT 1, 'a' UNION ALL SELECT 2, 'b'").unwrap(), "1|a\n2|b");
        assert!(server.query(&copy, "SELECT absent").is_err());
        assert!(std::path::Path::new("/proc").join(server.process_id().unwrap().to_string()).exists());
        let port = server.port;
        drop(server);
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "the server is gone");
    }
}
