//! The process: its signals, its file descriptors, and the lock that shows whether another one serves the same database.

use std::fs::{File, OpenOptions, TryLockError};
use std::future::poll_fn;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;
use std::{io, thread};

use adapters_storage::READ_CONNECTIONS;
use adapters_system::DescriptorLimit;
use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;

/// The number of `SIGXFSZ` on all supported Unix systems.
const SIGXFSZ: i32 = 25;

/// The numbers of `SIGVTALRM` and `SIGPROF` on all supported Unix systems.
const SIGVTALRM: i32 = 26;
const SIGPROF: i32 = 27;

/// Handles the signal for exceeding the file size limit: its default kills the process, while a failed write can be
/// reported. The handler stays for the life of the process.
///
/// # Errors
/// The handler cannot be installed.
pub fn handle_file_size_signal() -> io::Result<()> {
    // The handler stays installed after its listener is dropped.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

/// Signals that are handled for the life of the process.
pub struct Signals(Vec<(&'static str, Signal)>);

impl Signals {
    /// Handles the signals that stop the process.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn of_shutdown() -> io::Result<Self> {
        Self::listen([
            ("SIGTERM", SignalKind::terminate()),
            ("SIGINT", SignalKind::interrupt()),
            ("SIGQUIT", SignalKind::quit()),
        ])
    }

    /// Handles the signal that asks for a reload of the configuration.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn of_reload() -> io::Result<Self> {
        Self::listen([("SIGHUP", SignalKind::hangup())])
    }

    /// Handles the signals that kill a process by default and have no meaning for a server.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn without_meaning() -> io::Result<Self> {
        Self::listen([
            ("SIGUSR1", SignalKind::user_defined1()),
            ("SIGUSR2", SignalKind::user_defined2()),
            ("SIGALRM", SignalKind::alarm()),
            ("SIGIO", SignalKind::io()),
            ("SIGVTALRM", SignalKind::from_raw(SIGVTALRM)),
            ("SIGPROF", SignalKind::from_raw(SIGPROF)),
        ])
    }

    fn listen<const N: usize>(kinds: [(&'static str, SignalKind); N]) -> io::Result<Self> {
        let listened = kinds.into_iter().map(|(name, kind)| Ok((name, signal(kind)?)));
        Ok(Self(listened.collect::<io::Result<_>>()?))
    }

    /// Returns the name of the next signal; several of one kind at once count as one. Cancel-safe.
    pub async fn next(&mut self) -> &'static str {
        poll_fn(|cx| {
            let next = self.0.iter_mut().find_map(|(name, signal)| signal.poll_recv(cx).is_ready().then_some(*name));
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Concurrent connections of the metrics listener.
pub(super) const METRICS_CONNECTIONS: usize = 64;
/// Descriptors per operation: a provider's connection and a hedged one, or the two files of a copy.
const PER_OPERATION: u64 = 2;
/// Descriptors per database connection: its file, the write-ahead log and its index.
const PER_DATABASE_CONNECTION: u64 = 3;
/// Database connections beside those for reads: two for writes, one that checkpoints the write-ahead log, and one that
/// detects commits.
const OTHER_DATABASE_CONNECTIONS: u64 = 4;
/// Connections that each worker accepts beyond its limit.
const WAITING_CONNECTIONS: u64 = 16;
/// A generous estimate for the process itself and its tasks.
const OTHERS: u64 = 128;

/// Raises the limit of the process to the system's maximum. Logs a warning if the configuration may need more.
pub fn prepare_descriptors(config: &Config) {
    let limit = DescriptorLimit::raise().soft;
    let needed = needed(config, thread::available_parallelism().map_or(1, NonZero::get));
    if needed > limit {
        tracing::warn!(
            descriptors.limit = limit,
            descriptors.needed = needed,
            "too few file descriptors for this configuration: \
             raise LimitNOFILE (ulimit -n) or lower server.max_connections_per_worker"
        );
    }
}

/// Returns the maximum number of descriptors that the configuration can require.
fn needed(config: &Config, processors: usize) -> u64 {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let workers = number(config.server.workers.unwrap_or(processors));
    let places = number(config.server.max_connections_per_worker).saturating_mul(workers);
    let measures = config.server.metrics_listen.map_or(0, |_| number(METRICS_CONNECTIONS));
    let waiting = workers.saturating_add(1).saturating_mul(WAITING_CONNECTIONS);
    let connections = places.saturating_add(measures).saturating_add(waiting);
    let operations = number(config.limits.admission.max_in_flight).min(places);
    let database = u64::from(READ_CONNECTIONS) + OTHER_DATABASE_CONNECTIONS;
    connections
        .saturating_add(operations.saturating_mul(PER_OPERATION))
        .saturating_add(database.saturating_mul(PER_DATABASE_CONNECTION))
        .saturating_add(OTHERS)
}

/// The time that a start waits for a command that needs the database alone.
const MAX_WAIT: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// A lock on a file beside the database. The system releases it when the process ends.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

impl ServerLock {
    /// Takes the lock for this process alone; `None` if a server holds it. Servers wait for its release for ten seconds.
    ///
    /// # Errors
    /// The file cannot be created, or its file system does not support locks.
    pub fn take_alone(database: &Path) -> io::Result<Option<Self>> {
        let file = open(database)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Takes the lock, shared with other servers and commands; `None` if the file system does not support locks.
    ///
    /// # Errors
    /// Another process uses the database alone, such as a copy of it.
    pub async fn share(database: &Path) -> anyhow::Result<Option<Self>> {
        match Self::take(database).await {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                bail!("another process uses the database alone; repeat the command after its end")
            }
            Err(error) => {
                tracing::debug!(%error, "database folder does not support file locks");
                Ok(None)
            }
        }
    }

    async fn take(database: &Path) -> io::Result<Self> {
        let file = open(database)?;
        let taken = async {
            loop {
                match file.try_lock_shared() {
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(STEP).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => return Ok(()),
                }
            }
        };
        tokio::time::timeout(MAX_WAIT, taken).await.map_err(io::Error::from)??;
        Ok(Self { _file: file })
    }
}

fn open(database: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock_file(database))
}

fn lock_file(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".serving");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, load_text};

    #[test]
    fn needed_descriptors_depend_on_configuration() {
        let of = |text: &str| needed(&load_text(None, text, &Environment::default()).unwrap(), 4);
        assert_eq!(of(""), 4 * 8_192 + 5 * 16 + 2 * 4_096 + 3 * 8 + 128);
        let small = "[server]\nworkers = 2\nmax_connections_per_worker = 16\n";
        assert_eq!(of(small), 32 + 3 * 16 + 2 * 32 + 3 * 8 + 128);
        let measured = small.replace("workers", "metrics_listen = \"127.0.0.1:9100\"\nworkers");
        assert_eq!(of(&measured), of(small) + 64);
        let huge = format!("[server]\nmax_connections_per_worker = {}\n", i64::MAX);
        assert_eq!(of(&huge), u64::MAX);
    }

    #[tokio::test]
    async fn take_alone_fails_beside_servers() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let (first, second) = (ServerLock::take(&database).await.unwrap(), ServerLock::take(&database).await.unwrap());
        assert!(ServerLock::take_alone(&database).unwrap().is_none());
        drop(first);
        assert!(ServerLock::take_alone(&database).unwrap().is_none());
        drop(second);
        let alone = ServerLock::take_alone(&database).unwrap();
        assert!(alone.is_some() && ServerLock::take_alone(&database).unwrap().is_none());
    }

    #[tokio::test]
    async fn take_waits_for_a_command_that_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let alone = ServerLock::take_alone(&database).unwrap();
        let mut server = std::pin::pin!(ServerLock::take(&database));
        assert!(futures_util::poll!(&mut server).is_pending());
        drop(alone);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn take_fails_when_folder_is_missing() {
        assert!(ServerLock::take(Path::new("/nowhere/at/all/a.db")).await.is_err());
    }
}
