//! A Valkey or Redis server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::ports;
use crate::process;
use crate::user::User;

/// The programs, the preferred one first, and the folders of packages.
const PROGRAMS: [&str; 2] = ["valkey-server", "redis-server"];
const FOLDERS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];
/// The longest start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A server without a disk, in a temporary folder, which it removes when it stops.
pub struct Valkey {
    program: PathBuf,
    port: u16,
    options: Vec<String>,
    /// `None` while it is stopped.
    server: Mutex<Option<Guarded>>,
}

impl Valkey {
    /// Starts a server without a password.
    ///
    /// # Errors
    /// Neither Valkey nor Redis is installed, or the server does not start.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with further options, such as `--requirepass`.
    ///
    /// # Errors
    /// Neither Valkey nor Redis is installed, or the server does not start.
    pub fn start_with(options: &[&str]) -> anyhow::Result<Self> {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let server = Self { program: program()?, port: ports::free()?, options, server: Mutex::new(None) };
        server.restart()?;
        Ok(server)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the URL of the first database.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Stops the server. Its data is lost.
    pub fn stop(&self) {
        drop(self.lock().take());
    }

    /// Ends the server with `SIGKILL`. Its data is lost.
    ///
    /// # Errors
    /// The server is stopped.
    pub fn kill(&self) -> anyhow::Result<()> {
        self.signal("KILL")?;
        self.stop();
        Ok(())
    }

    /// Suspends the server: it accepts connections and does not answer, until [`Valkey::resume`].
    ///
    /// # Errors
    /// The server is stopped.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal("STOP")
    }

    /// Continues a frozen server, with its data.
    ///
    /// # Errors
    /// The server is stopped.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> anyhow::Result<()> {
        let server = self.lock().as_ref().context("the server is stopped")?.server()?;
        process::signal(name, &[server])
    }

    /// Starts a stopped server again, empty and at the same address.
    ///
    /// # Errors
    /// The server does not start.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.stop();
        let user = User::unprivileged()?;
        let folder = TempDir::with_prefix("valkey-").context("no temporary folder")?.keep();
        user.own(&folder)?;
        let fixed = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
        let mut arguments: Vec<String> = fixed.iter().map(|argument| (*argument).to_owned()).collect();
        arguments.extend(["--port".to_owned(), self.port.to_string()]);
        arguments.extend(["--dir".to_owned(), folder.display().to_string()]);
        arguments.extend(self.options.iter().cloned());
        *self.lock() = Some(Guarded::start(&folder, &self.program, &arguments, user, "INT")?);
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> anyhow::Result<()> {
        let attempts = START_TIMEOUT.as_millis() / POLL.as_millis();
        for _ in 0..attempts {
            if self.answers().unwrap_or(false) {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        bail!("{} did not start within {} s", self.program.display(), START_TIMEOUT.as_secs())
    }

    /// Returns true if the server answers, with or without a demand for a password.
    fn answers(&self) -> std::io::Result<bool> {
        let mut connection = TcpStream::connect_timeout(&self.address(), POLL)?;
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        connection.write_all(b"PING\r\n")?;
        let mut reply = [0; 5];
        connection.read_exact(&mut reply)?;
        Ok(reply == *b"+PONG" || reply == *b"-NOAU")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Guarded>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the installed program.
fn program() -> anyhow::Result<PathBuf> {
    let paths = PROGRAMS.iter().flat_map(|program| FOLDERS.map(|folder| Path::new(folder).join(program)));
    paths.into_iter().find(|path| path.is_file()).context(
        "these tests need Valkey or Redis: `apt-get install valkey-server` or `apt-get install redis-server`, or \
         `cargo xtask test`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_answers_restarts_and_stops() {
        let server = Valkey::start_with(&["--requirepass", "s3cret"]).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(server.answers().unwrap());
        server.stop();
        assert!(server.answers().is_err(), "it is stopped");
        server.restart().unwrap_or_else(|error| panic!("{error:#}"));
        assert!(server.answers().unwrap());
        let address = server.address();
        drop(server);
        assert!(std::net::TcpListener::bind(address).is_ok(), "the server is gone");
    }
    #[test]
    fn frozen_server_is_silent_and_a_killed_one_is_gone() {
        let server = Valkey::start().unwrap_or_else(|error| panic!("{error:#}"));
        let process = server.lock().as_ref().unwrap().server().unwrap();
        server.freeze().unwrap();
        process::wait_for_state(process, &['T']);
        assert!(TcpStream::connect(server.address()).is_ok(), "the kernel still accepts connections");
        assert!(server.answers().is_err(), "it is silent");
        server.resume().unwrap();
        assert!(server.answers().unwrap());
        server.kill().unwrap();
        assert!(server.freeze().is_err() && TcpStream::connect(server.address()).is_err(), "it is gone");
        server.restart().unwrap_or_else(|error| panic!("{error:#}"));
        assert!(server.answers().unwrap());
        server.freeze().unwrap();
        let address = server.address();
        drop(server);
        assert!(std::net::TcpListener::bind(address).is_ok(), "a frozen server is gone, too");
    }
}
