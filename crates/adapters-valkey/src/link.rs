//! The connection to the server, with a short circuit while it fails.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::system::Clock;
use redis::aio::MultiplexedConnection;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::connector::Connector;
use crate::script::{Invocation, RateScript};
use crate::status::Counters;
use crate::{ValkeyError, ValkeySettings};

/// The time for a reply that no request waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection that all requests share. Its first failure opens a short circuit: later calls fail at once, until
/// [`Self::reconnect`] succeeds.
pub(crate) struct Link {
    connector: Connector,
    script: RateScript,
    timeout: Duration,
    state: Mutex<LinkState>,
    failed: Notify,
}

struct LinkState {
    connection: Result<MultiplexedConnection, String>,
    /// Distinguishes connections, so that a late failure of an old one leaves the new one alone.
    generation: u64,
}

/// The server is not used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable;

impl Link {
    /// Connects, and runs the script once. A server that cannot be reached is an outage, which [`Self::reconnect`] ends.
    ///
    /// # Errors
    /// The settings cannot be used, or the server rejects the credentials or the script.
    pub(crate) async fn start(settings: &ValkeySettings, script: RateScript) -> Result<Self, ValkeyError> {
        let connector = Connector::new(settings)?;
        // The first answer of a cold server may be slower than a request may wait.
        let patience = settings.timeout.max(PATIENCE);
        let connection = match open(&connector, &script, &settings.key_prefix, patience).await {
            Err(error) if error.is_outage() => Err(error.to_string()),
            opened => Ok(opened?),
        };
        let state = Mutex::new(LinkState { connection, generation: 0 });
        Ok(Self { connector, script, timeout: settings.timeout, state, failed: Notify::new() })
    }

    /// Returns the name of the server for messages.
    pub(crate) fn server(&self) -> &str {
        self.connector.server()
    }

    /// Returns the last error while the server is not used.
    pub(crate) fn outage(&self) -> Option<String> {
        self.lock().connection.as_ref().err().cloned()
    }

    /// Runs the script within the timeout of a request.
    pub(crate) async fn run(&self, invocation: &Invocation, counters: &Counters) -> Result<Vec<i64>, Unavailable> {
        self.run_within(self.timeout, invocation, counters).await
    }

    /// Checks an idle link, with patience: only requests measure whether the server is too slow for them.
    pub(crate) async fn check(&self, key_prefix: &str, counters: &Counters) {
        let within = self.timeout.max(PATIENCE);
        // A failure is recorded.
        let _ = self.run_within(within, &check(key_prefix), counters).await;
    }

    async fn run_within(
        &self,
        within: Duration,
        invocation: &Invocation,
        counters: &Counters,
    ) -> Result<Vec<i64>, Unavailable> {
        let (mut connection, generation) = {
            let state = self.lock();
            (state.connection.clone().map_err(|_| Unavailable)?, state.generation)
        };
        let error = match timeout(within, self.script.run(&mut connection, invocation)).await {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(error)) => ValkeyError::new(self.server(), &error),
            Err(_) => ValkeyError::unusable(self.server(), no_reply(within)),
        };
        self.fail(generation, &error, counters);
        Err(Unavailable)
    }

    /// Waits for the next failure.
    pub(crate) async fn wait_for_failure(&self) {
        self.failed.notified().await;
    }

    /// Replaces the connection by a new one that answers within the timeout.
    pub(crate) async fn reconnect(&self, key_prefix: &str) -> Result<(), ValkeyError> {
        let opened = open(&self.connector, &self.script, key_prefix, self.timeout).await;
        let mut state = self.lock();
        match opened {
            Ok(connection) => {
                *state = LinkState { connection: Ok(connection), generation: state.generation.wrapping_add(1) };
                Ok(())
            }
            Err(error) => {
                state.connection = Err(error.to_string());
                Err(error)
            }
        }
    }

    /// Opens the short circuit, unless the connection was replaced.
    fn fail(&self, generation: u64, error: &ValkeyError, counters: &Counters) {
        let mut state = self.lock();
        if state.generation != generation || state.connection.is_err() {
            return;
        }
        state.connection = Err(error.to_string());
        counters.outages.add_one();
        self.failed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        // No code under the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection, and checks by one write that the script runs.
async fn open(
    connector: &Connector,
    script: &RateScript,
    key_prefix: &str,
    within: Duration,
) -> Result<MultiplexedConnection, ValkeyError> {
    let mut connection = connector.connect().await?;
    match timeout(within, script.run(&mut connection, &check(key_prefix))).await {
        Ok(Ok(_)) => Ok(connection),
        Ok(Err(error)) => Err(ValkeyError::new(connector.server(), &error)),
        Err(_) => Err(ValkeyError::unusable(connector.server(), no_reply(within))),
    }
}

/// Returns an invocation that writes a key of a second, to see that the server accepts writes.
fn check(key_prefix: &str) -> Invocation {
    let arguments = ["take", "1", "1", "4294967295"].map(str::to_owned).to_vec();
    Invocation { keys: vec![format!("{key_prefix}check")], arguments }
}

fn no_reply(within: Duration) -> String {
    format!("no reply within {} ms", within.as_millis())
}

/// The intervals of the task that keeps the link.
const CHECK_EVERY: Duration = Duration::from_secs(1);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// The uptime after which the delay begins anew: a server that fails at once after each connection is tried rarely.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The delay before the next connection, which doubles while connections fail soon.
pub(crate) struct Backoff {
    clock: Arc<dyn Clock>,
    next: Duration,
    connected_at: Duration,
}

impl Backoff {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let connected_at = clock.monotonic();
        Self { clock, next: FIRST_DELAY, connected_at }
    }

    /// Returns the delay after a connection has failed.
    pub(crate) fn after_failure(&mut self) -> Duration {
        if self.clock.monotonic().saturating_sub(self.connected_at) >= STABLE_AFTER {
            self.next = FIRST_DELAY;
        }
        self.next_delay()
    }

    /// Returns the delay after an attempt to connect has failed.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST_DELAY);
        delay
    }

    /// Records a new connection.
    pub(crate) fn connected(&mut self) {
        self.connected_at = self.clock.monotonic();
    }
}

/// Returns after the interval between two checks of an idle link.
pub(crate) async fn check_interval() {
    sleep(CHECK_EVERY).await;
}

#[cfg(test)]
mod tests {
    use domain::testing::FixedClock;

    use super::*;

    #[test]
    fn delay_doubles_until_a_connection_was_stable() {
        let clock = FixedClock::default();
        let mut backoff = Backoff::new(Arc::new(clock.clone()));
        let delays: Vec<u128> = (0..8).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.connected();
        clock.advance(STABLE_AFTER.saturating_sub(Duration::from_millis(1)));
        assert_eq!(backoff.after_failure(), LONGEST_DELAY, "it failed soon");
        clock.advance(Duration::from_millis(1));
        assert_eq!(backoff.after_failure(), FIRST_DELAY);
    }
}
