//! A pool of connections to PostgreSQL.
//!
//! The pool of the driver tests a released connection without a time limit and keeps its place meanwhile, so that a
//! silent server takes all places. Here a connection without a response leaves its place at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::DbErr;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgSeverity};
use sea_orm::sqlx::{ConnectOptions, Connection as _, Error, Executor, PgConnection};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use super::statements::unavailable;
use crate::errors::{connection_error, driver_message};

/// The longest idle time of a connection: firewalls drop idle ones silently.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// The longest life of a connection, so that a moved server is found.
const MAX_LIFETIME: Duration = Duration::from_mins(30);
/// The idle time after which a connection is tested before its next use.
const TEST_AFTER: Duration = Duration::from_secs(1);
/// The longest test of a connection, farewell to one, or rollback on one. A slow server gets a new connection.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest attempt to connect. It may outlast its caller, so that a slow server is not attempted in vain again and
/// again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The error of a call without a response.
const SILENT: &str = "PostgreSQL did not respond in time";
/// The pause between attempts to connect to a server that is starting.
const START_RETRY: Duration = Duration::from_millis(50);

/// Connections to one server, opened on first use.
pub(crate) struct PostgresPool {
    options: PgConnectOptions,
    /// The longest wait for a place, and again for a connection.
    busy_timeout: Duration,
    places: Arc<Semaphore>,
    limit: u32,
    idle: Mutex<Vec<IdleConnection>>,
    server: Arc<Reachability>,
    /// Attempts to connect, and rollbacks. Each ends within its time limit.
    tasks: TaskTracker,
    /// The runtime that opened the database. A socket belongs to the runtime that connects it, and runtimes of workers end
    /// before the last writes.
    runtime: Handle,
}

struct IdleConnection {
    connection: PgConnection,
    opened_at: Instant,
    idle_since: Instant,
    losses: u64,
}

impl PostgresPool {
    pub(crate) fn new(
        options: PgConnectOptions,
        limit: u32,
        busy_timeout: Duration,
        server: Arc<Reachability>,
    ) -> Arc<Self> {
        let (places, tasks, runtime) =
            (Arc::new(Semaphore::new(limit as usize)), TaskTracker::new(), Handle::current());
        Arc::new(Self { options, busy_timeout, places, limit, idle: Mutex::default(), server, tasks, runtime })
    }

    /// Returns the connections in use, the idle ones, and their limit.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let busy = (self.limit as usize).saturating_sub(self.places.available_permits());
        let as_u64 = |count| u64::try_from(count).unwrap_or(u64::MAX);
        (as_u64(busy), as_u64(self.idle().len()), u64::from(self.limit))
    }

    /// Waits for a place and takes an idle connection, or opens one. Both waits end after the busy timeout. The server
    /// may have closed a connection that was in use a moment ago, unless every idle connection `is_tested`.
    pub(super) async fn acquire(self: &Arc<Self>, is_tested: bool) -> Result<PooledConnection, DbErr> {
        let place = timeout(self.busy_timeout, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| unavailable("every connection of this process to PostgreSQL is busy"))?;
        let place = place.map_err(|_| unavailable("the database is closed"))?;
        let test_after = if is_tested { Duration::ZERO } else { TEST_AFTER };
        let mut found = None;
        while found.is_none()
            && let Some(idle) = self.take_idle()
        {
            found = test(idle, test_after).await;
        }
        let (connection, opened_at) = match found {
            Some(found) => found,
            None => (self.connect().await?, Instant::now()),
        };
        Ok(PooledConnection { pool: Arc::clone(self), connection: Some(connection), opened_at, _place: place })
    }

    /// Closes idle connections, and used ones as they are released.
    pub(crate) async fn close(&self) {
        self.places.close();
        while let Some(idle) = self.take_idle() {
            say_farewell(idle.connection).await;
        }
    }

    /// Takes the connection that was used last. Drops those that were open at a loss.
    fn take_idle(&self) -> Option<IdleConnection> {
        let losses = self.server.losses();
        let mut idle = self.idle();
        idle.retain(|idle| idle.losses == losses);
        idle.pop()
    }

    /// Waits for a new connection until the busy timeout. The attempt continues after that, and its connection serves a
    /// later call.
    async fn connect(self: &Arc<Self>) -> Result<PgConnection, DbErr> {
        let Some(attempt) = self.server.begin() else {
            let failed = self.describe("the last attempt to connect failed");
            return Err(unavailable(format!("{failed}; the next one follows shortly")));
        };
        let (sender, receiver) = oneshot::channel();
        let pool = Arc::clone(self);
        let connecting = async move {
            let opened = pool.attempt(attempt).await;
            if let Err(Ok(connection)) = sender.send(opened) {
                pool.keep(connection, Instant::now());
            }
        };
        self.tasks.spawn_on(connecting, &self.runtime);
        let Ok(opened) = timeout(self.busy_timeout, receiver).await else {
            self.server.delayed();
            return Err(unavailable(self.describe("no connection within storage.busy_timeout_ms")));
        };
        opened.unwrap_or_else(|_| Err(unavailable("the attempt to connect was interrupted")))
    }

    async fn attempt(&self, attempt: ConnectAttempt) -> Result<PgConnection, DbErr> {
        let opened = timeout(CONNECT_TIMEOUT, self.open(&attempt)).await;
        if matches!(opened, Ok(Ok(_))) {
            attempt.succeeded();
        } else {
            attempt.failed();
        }
        let opened = opened.map_err(|_| unavailable(self.describe("no connection")))?;
        opened.map_err(connection_error)
    }

    /// Describes a failure with the server's address and the error of the last attempt to connect.
    pub(crate) fn describe(&self, failure: &str) -> String {
        let address = match self.options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", self.options.get_host(), self.options.get_port()),
        };
        let cause = self.server.last_error().map(|error| format!(": {error}")).unwrap_or_default();
        format!("PostgreSQL at {address}: {failure}{cause}")
    }

    /// Opens a connection if none is idle, so that the error has the cause of a failure.
    pub(crate) async fn check(self: &Arc<Self>) -> Result<(), DbErr> {
        self.acquire(true).await.map(PooledConnection::release)
    }

    /// Keeps a connection for a later call, unless there are enough.
    fn keep(&self, connection: PgConnection, opened_at: Instant) {
        let (idle_since, losses) = (Instant::now(), self.server.losses());
        let mut idle = self.idle();
        if !self.places.is_closed() && idle.len() < self.limit as usize {
            idle.push(IdleConnection { connection, opened_at, idle_since, losses });
        }
    }

    /// Opens a connection. Waits for a server that is starting, unless it failed before.
    async fn open(&self, attempt: &ConnectAttempt) -> Result<PgConnection, Error> {
        loop {
            let opened = self.options.connect().await;
            if let Err(error) = &opened {
                self.server.lock().last_error = Some(driver_message(error));
            }
            match opened {
                Err(error) if is_starting(&error) && !attempt.is_probe() => tokio::time::sleep(START_RETRY).await,
                opened => return opened,
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tests a connection that was idle for `test_after`. Closes an old or broken one.
async fn test(idle: IdleConnection, test_after: Duration) -> Option<(PgConnection, Instant)> {
    let IdleConnection { mut connection, opened_at, idle_since, .. } = idle;
    if opened_at.elapsed() > MAX_LIFETIME || idle_since.elapsed() > IDLE_TIMEOUT {
        say_farewell(connection).await;
        return None;
    }
    let is_usable =
        idle_since.elapsed() < test_after || matches!(timeout(TEST_TIMEOUT, connection.ping()).await, Ok(Ok(())));
    is_usable.then_some((connection, opened_at))
}

/// Ends a session, so that the server does not log its loss. The socket closes in any case.
async fn say_farewell(connection: PgConnection) {
    drop(timeout(TEST_TIMEOUT, connection.close()).await);
}

/// The SQLSTATE of a server that starts or stops, and of one with too many connections.
const TRANSIENT_CODES: [&str; 2] = ["57P03", "53300"];

fn is_starting(error: &Error) -> bool {
    match error {
        Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        Error::Database(error) => {
            error.try_downcast_ref::<PgDatabaseError>().is_some_and(|error| TRANSIENT_CODES.contains(&error.code()))
        }
        _ => false,
    }
}

/// A connection that returns to its pool by [`PooledConnection::release`], and is closed otherwise.
pub(super) struct PooledConnection {
    pool: Arc<PostgresPool>,
    /// `None` during a call, and after one without a response.
    connection: Option<PgConnection>,
    opened_at: Instant,
    _place: OwnedSemaphorePermit,
}

impl PooledConnection {
    /// Runs a call of the driver until `end`. A connection whose call times out, breaks or is dropped is closed.
    pub(super) async fn call<T>(
        &mut self,
        end: Instant,
        call: impl for<'c> FnOnce(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Error>>,
    ) -> Result<T, Error> {
        let closed = || std::io::Error::new(std::io::ErrorKind::NotConnected, "the connection was closed");
        let mut connection = self.connection.take().ok_or_else(|| Error::Io(closed()))?;
        let Ok(result) = timeout_at(end, call(&mut connection)).await else {
            drop(connection);
            self.pool.server.lost();
            let silence = std::io::Error::new(std::io::ErrorKind::TimedOut, SILENT);
            return Err(Error::Io(silence));
        };
        if !result.as_ref().err().is_some_and(is_broken) {
            self.connection = Some(connection);
        }
        result
    }

    /// Returns the connection to its pool. It must not be in a transaction.
    pub(super) fn release(mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.pool.server.responded();
        self.pool.keep(connection, self.opened_at);
    }

    /// Rolls back in the background, and then returns the connection to its pool.
    pub(super) fn roll_back(mut self) {
        if self.connection.is_none() {
            return;
        }
        let (tasks, runtime) = (self.pool.tasks.clone(), self.pool.runtime.clone());
        let rollback = async move {
            let end = Instant::now() + TEST_TIMEOUT;
            if self.call(end, |connection| connection.execute("ROLLBACK")).await.is_ok() {
                self.release();
            }
        };
        tasks.spawn_on(rollback, &runtime);
    }
}

/// Returns true if a call failed because its connection was closed, and not because the server was silent.
pub(super) fn is_closed(error: &Error) -> bool {
    let is_silent = matches!(error, Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut);
    is_broken(error) && !is_silent
}

/// Returns true if the server has ended the connection, or its replies cannot be read.
fn is_broken(error: &Error) -> bool {
    match error {
        Error::Database(error) => {
            let error = error.try_downcast_ref::<PgDatabaseError>();
            error.is_none_or(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
        }
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) | Error::WorkerCrashed => true,
        _ => false,
    }
}

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Whether a server responds. All pools of a database share it.
#[derive(Debug, Default)]
pub(crate) struct Reachability(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures since the last success.
    failures: u32,
    /// The time before which no connection is attempted after a failure.
    retry_at: Option<Instant>,
    /// True while a connection is attempted after a failure. All others fail meanwhile.
    is_probing: bool,
    /// The number of failures that ended open connections.
    losses: u64,
    /// The error of the last failure; `None` after a success.
    last_error: Option<String>,
}

impl Reachability {
    /// Begins an attempt to connect. Returns `None` after a failure, if it is too early or another attempt is under way.
    pub(super) fn begin(self: &Arc<Self>) -> Option<ConnectAttempt> {
        let mut state = self.lock();
        let is_probe = state.failures > 0;
        if is_probe {
            let is_early = state.retry_at.is_some_and(|at| Instant::now() < at);
            if state.is_probing || is_early {
                return None;
            }
            state.is_probing = true;
        }
        drop(state);
        Some(ConnectAttempt { reachability: Arc::clone(self), is_probe, is_over: false })
    }

    /// Records that an open connection got no response: other connections that were open then are probably lost, too.
    pub(super) fn lost(&self) {
        let mut state = self.lock();
        state.losses += 1;
        state.last_error = Some(SILENT.to_owned());
        state.failed();
    }

    /// Records that an attempt to connect takes long. It goes on, and until it succeeds others follow one at a time.
    pub(super) fn delayed(&self) {
        self.lock().failed();
    }

    /// Returns the number of losses. A connection that was idle before the last one is not used again.
    pub(super) fn losses(&self) -> u64 {
        self.lock().losses
    }

    /// Records a response.
    pub(super) fn responded(&self) {
        let mut state = self.lock();
        (state.failures, state.retry_at, state.last_error) = (0, None, None);
    }

    /// Returns the error of the last failure; `None` after a success.
    fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(Instant::now() + pause);
    }
}

/// An attempt to connect. One that is dropped without a result counts as failed if it followed a failure.
#[derive(Debug)]
pub(super) struct ConnectAttempt {
    reachability: Arc<Reachability>,
    is_probe: bool,
    is_over: bool,
}

impl ConnectAttempt {
    /// Returns true if an earlier failure was not followed by a success.
    pub(super) fn is_probe(&self) -> bool {
        self.is_probe
    }

    pub(super) fn succeeded(mut self) {
        self.is_over = true;
        self.reachability.responded();
    }

    pub(super) fn failed(mut self) {
        self.is_over = true;
        self.reachability.lock().failed();
    }
}

impl Drop for ConnectAttempt {
    fn drop(&mut self) {
        if self.is_probe {
            let mut state = self.reachability.lock();
            state.is_probing = false;
            if !self.is_over {
                state.failed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_follow_failures_one_at_a_time_with_growing_pauses() {
        let server = Arc::new(Reachability::default());
        let (one, two) = (server.begin().unwrap(), server.begin().unwrap());
        assert!(!one.is_probe() && !two.is_probe(), "connections are opened at once while the server responds");
        one.failed();
        drop(two);
        let mut pause = FIRST_PAUSE;
        for _ in 0..8 {
            advance(pause.saturating_sub(Duration::from_millis(1))).await;
            assert!(server.begin().is_none(), "too early");
            advance(Duration::from_millis(1)).await;
            let probe = server.begin().unwrap();
            assert!(probe.is_probe() && server.begin().is_none(), "one probe at a time");
            probe.failed();
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        advance(LONGEST_PAUSE).await;
        drop(server.begin().unwrap());
        assert!(server.begin().is_none(), "a dropped probe counts as failed");
        advance(LONGEST_PAUSE).await;
        server.begin().unwrap().succeeded();
        assert!(!server.begin().unwrap().is_probe());
    }
}
