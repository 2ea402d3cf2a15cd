//! A PgBouncer server in transaction mode.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::ports;
use crate::postgres::{Postgres, SUPERUSER};
use crate::user::User;

/// The variable with the path of the program, for machines whose package is too old.
const PROGRAM: &str = "TOLLGATE_TEST_PGBOUNCER";
/// The programs of packages; Debian's first.
const PACKAGED: [&str; 3] = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
/// The first version that supports prepared statements in transaction mode.
const OLDEST: (u32, u32) = (1, 21);
/// The longest start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// A pooler in front of a PostgreSQL server.
pub struct PgBouncer {
    port: u16,
    server_port: u16,
    /// Stopped with this value.
    _server: Guarded,
}

impl PgBouncer {
    /// Starts a pooler with few connections for each database, so that its clients share them.
    ///
    /// # Errors
    /// PgBouncer is not installed or too old, or it does not start.
    pub fn start(postgres: &Postgres) -> anyhow::Result<Self> {
        let program = program();
        let advice = format!(
            "these tests need PgBouncer {}.{} or later (Debian 13, Ubuntu 24.04): `apt-get install pgbouncer`, or set \
             {PROGRAM} to the program",
            OLDEST.0, OLDEST.1
        );
        let version = Command::new(&program).arg("--version").output().with_context(|| advice.clone())?;
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        ensure!(parse_version(&version).is_some_and(|version| version >= OLDEST), "{advice}; found: {version}");
        Self::launch(&program, postgres, "max_prepared_statements = 100\n")
    }

    /// Starts a pooler of any version, which drops these parameters at the start of a connection. Versions before 1.21
    /// support no prepared statements, and so no use of the database.
    ///
    /// # Errors
    /// PgBouncer is not installed, or it does not start.
    pub fn start_any_version(postgres: &Postgres, dropped_parameters: &str) -> anyhow::Result<Self> {
        Self::launch(&program(), postgres, &format!("ignore_startup_parameters = {dropped_parameters}\n"))
    }

    fn launch(program: &Path, postgres: &Postgres, more_settings: &str) -> anyhow::Result<Self> {
        let user = User::unprivileged()?;
        let folder = TempDir::with_prefix("pgbouncer-").context("no temporary folder")?.keep();
        let (port, server_port) = (ports::free()?, postgres.port());
        let configuration = folder.join("pgbouncer.ini");
        std::fs::write(&configuration, settings(port, server_port) + more_settings)?;
        user.own(&folder)?;
        let arguments = [configuration.display().to_string()];
        // Versions differ in which signals wait for clients.
        let server = Guarded::start(&folder, program, &arguments, user, "KILL")?;
        let pooler = Self { port, server_port, _server: server };
        pooler.wait_until_ready()?;
        Ok(pooler)
    }

    /// Returns the URL of a database of the server, through the pooler.
    pub fn url(&self, database: &str) -> String {
        database.replacen(&format!(":{}/", self.server_port), &format!(":{}/", self.port), 1)
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let attempts = START_TIMEOUT.as_millis() / POLL.as_millis();
        for _ in 0..attempts {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("PgBouncer did not start within {} s", START_TIMEOUT.as_secs())
    }
}

fn settings(port: u16, server_port: u16) -> String {
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={server_port} user={SUPERUSER}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = transaction\n\
         default_pool_size = 3\n\
         max_client_conn = 2000\n\
         server_idle_timeout = 5\n"
    )
}

#[expect(clippy::disallowed_methods, reason = "a test, not the service: it has no configuration")]
fn program() -> PathBuf {
    let packaged = || PACKAGED.iter().find(|program| Path::new(program).is_file()).unwrap_or(&PACKAGED[0]);
    std::env::var_os(PROGRAM).map_or_else(|| PathBuf::from(packaged()), PathBuf::from)
}

/// Parses `PgBouncer 1.24.1`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.lines().next()?.strip_prefix("PgBouncer ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_first_line() {
        assert_eq!(parse_version("PgBouncer 1.24.1\nlibevent 2.1.12-stable\n"), Some((1, 24)));
        assert_eq!(parse_version("PgBouncer 1.18.0"), Some((1, 18)));
        assert_eq!(parse_version("bash"), None);
    }
}
