//! Notifications of PostgreSQL about changes.
//!
//! They only save time and polls: every change is a row of the feed, which is polled in any case. A lost notification
//! delays a change by a poll interval.
//!
//! Behind a pooler in transaction mode a process must not listen: the pooler would lend the server's connection, which
//! keeps listening, to other clients, and their statements fail on a notification. So the connection sets a parameter at
//! its start, which a pooler rejects or drops, and listens only if the server knows it.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use domain::change_feed::ChangeSignal;
use domain::error::StoreError;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sea_orm::sqlx::{AssertSqlSafe, Error, Executor as _, Row as _};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::database::Database;
use crate::errors::{driver_error, store_error};

/// The channel of changes.
const CHANNEL: &str = "tollgate_changes";
/// The time between two tests of the connection that listens: a silent server does not end it.
const TEST_EVERY: Duration = Duration::from_secs(30);
/// The longest wait for a notification that this process sent to itself.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The pause after a pooler was found, whose log may name every attempt.
const POOLER_PAUSE: Duration = Duration::from_mins(10);
/// The parameter by which a process recognizes its own session.
const SESSION_PARAMETER: &str = "tollgate.session";
/// The SQLSTATEs of poolers for a parameter at the start of a connection that they do not support.
const UNSUPPORTED_PARAMETER: [&str; 2] = ["08P01", "0A000"];
/// The least time between two reads of the feed, which bounds the reads while very many changes are made.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// The intervals at which the feed is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollIntervals {
    /// The interval without notifications.
    pub unnotified: Duration,
    /// The interval while notifications arrive.
    pub notified: Duration,
}

/// Says when the change feed of a database is to be read: at an interval, and when PostgreSQL notifies of a change.
pub struct ChangeNotifications {
    database: Database,
    intervals: PollIntervals,
    /// The value of [`SESSION_PARAMETER`].
    session: String,
    /// The channel on which this process tests its connection.
    own_channel: String,
    is_listening: AtomicBool,
    wake: Notify,
}

impl ChangeNotifications {
    /// Creates the signal; [`ChangeNotifications::listen`] receives notifications.
    pub fn new(database: Database, intervals: PollIntervals) -> Self {
        let session = format!("{:x}", RandomState::new().hash_one(CHANNEL));
        let own_channel = format!("tollgate_test_{session}");
        Self { database, intervals, session, own_channel, is_listening: AtomicBool::new(false), wake: Notify::new() }
    }

    /// Returns true while notifications arrive.
    pub fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }

    /// Receives notifications on a connection of its own until cancelled. A lost connection is opened again, with
    /// back-off. SQLite has no notifications.
    pub async fn listen(&self, cancelled: CancellationToken) {
        if let Some(server) = self.database.postgres_options() {
            cancelled.run_until_cancelled(self.listen_repeatedly(server)).await;
            self.set_listening(false);
        }
    }

    async fn listen_repeatedly(&self, server: &PgConnectOptions) {
        let (mut pause, mut is_pooled) = (FIRST_PAUSE, false);
        loop {
            let Err(interruption) = self.listen_once(server).await;
            if self.set_listening(false) {
                pause = FIRST_PAUSE;
            }
            match interruption {
                Interruption::Pooler => {
                    if !is_pooled {
                        tracing::info!("no notifications through a pooler: the change feed is polled more often");
                    }
                    is_pooled = true;
                    sleep(POOLER_PAUSE).await;
                }
                Interruption::Lost(error) => {
                    if pause == FIRST_PAUSE {
                        let error: &dyn std::error::Error = &error;
                        tracing::warn!(error, "no notifications of changes: the change feed is polled more often");
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Listens until the connection is lost or silent.
    async fn listen_once(&self, server: &PgConnectOptions) -> Result<Infallible, Interruption> {
        let mut listener = timeout(CONNECT_TIMEOUT, self.connect(server)).await.map_err(|_| {
            StoreError::unavailable(self.database.describe_failure("no connection for notifications"))
        })??;
        loop {
            self.test(&mut listener).await?;
            if !self.set_listening(true) {
                tracing::info!("receiving notifications of changes");
            }
            let next_test = Instant::now() + TEST_EVERY;
            while let Ok(channel) = timeout_at(next_test, receive(&mut listener)).await {
                if channel? == CHANNEL {
                    self.wake.notify_one();
                }
            }
        }
    }

    async fn connect(&self, server: &PgConnectOptions) -> Result<PgListener, Interruption> {
        let server = server.clone().options([(SESSION_PARAMETER, &self.session)]);
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(server);
        let mut listener = PgListener::connect_with(&pool).await.map_err(|error| match error {
            Error::Database(error) if error.code().is_some_and(|code| UNSUPPORTED_PARAMETER.contains(&&*code)) => {
                Interruption::Pooler
            }
            error => Interruption::Lost(driver_error(error)),
        })?;
        listener.eager_reconnect(false);
        let query = format!("SELECT current_setting('{SESSION_PARAMETER}', true)");
        let row = listener.fetch_one(AssertSqlSafe(query)).await.map_err(driver_error)?;
        let session: Option<String> = row.try_get(0).map_err(driver_error)?;
        if session.as_ref() != Some(&self.session) {
            return Err(Interruption::Pooler);
        }
        listener.listen_all([CHANNEL, &self.own_channel]).await.map_err(driver_error)?;
        Ok(listener)
    }

    /// Sends a notification to this process by another connection, and waits for it.
    async fn test(&self, listener: &mut PgListener) -> Result<(), StoreError> {
        notify(self.database.readers()?, &self.own_channel).await?;
        let arrived = timeout(TEST_TIMEOUT, async {
            loop {
                let channel = receive(listener).await?;
                if channel == self.own_channel {
                    return Ok(());
                }
                self.wake.notify_one();
            }
        });
        arrived.await.map_err(|_| StoreError::unavailable("a notification did not arrive: PostgreSQL is silent"))?
    }

    /// Returns the previous value.
    fn set_listening(&self, is_listening: bool) -> bool {
        let was_listening = self.is_listening.swap(is_listening, Ordering::AcqRel);
        if was_listening != is_listening {
            // The reader reads changes that nobody told it, and follows the other interval.
            self.wake.notify_one();
        }
        was_listening
    }
}

/// The reason why no notifications arrive.
enum Interruption {
    /// A pooler is between the process and the server.
    Pooler,
    /// The connection is lost, silent, or was not accepted.
    Lost(StoreError),
}

impl From<StoreError> for Interruption {
    fn from(error: StoreError) -> Self {
        Self::Lost(error)
    }
}

#[async_trait]
impl ChangeSignal for ChangeNotifications {
    async fn wait(&self) {
        let PollIntervals { unnotified, notified } = self.intervals;
        let interval = if self.is_listening() { notified } else { unnotified };
        sleep(LEAST_INTERVAL).await;
        // Either way the feed is read.
        drop(timeout(interval.saturating_sub(LEAST_INTERVAL), self.wake.notified()).await);
    }
}

/// Waits for a notification and returns its channel.
async fn receive(listener: &mut PgListener) -> Result<String, StoreError> {
    let received = listener.try_recv().await.map_err(driver_error)?;
    let received = received.ok_or_else(|| StoreError::unavailable("the connection for notifications was lost"))?;
    Ok(received.channel().to_owned())
}

/// Notifies all processes of a change when the transaction commits. SQLite has no notifications.
pub(crate) async fn notify_change(transaction: &impl ConnectionTrait) -> Result<(), StoreError> {
    match transaction.get_database_backend() {
        DbBackend::Postgres => notify(transaction, CHANNEL).await,
        _ => Ok(()),
    }
}

async fn notify(connection: &impl ConnectionTrait, channel: &str) -> Result<(), StoreError> {
    let values = [Value::from(channel)];
    let notify = Statement::from_sql_and_values(DbBackend::Postgres, "SELECT pg_notify($1, '')", values);
    connection.execute_raw(notify).await.map_err(store_error).map(drop)
}
