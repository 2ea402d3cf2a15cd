//! Follows the change feed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::change_feed::{ChangeFeed, ChangeVersions};
use domain::error::StoreError;
use domain::system::Clock;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::LiveCatalogue;

/// The longest time that a read of the feed may take, the wait for a read of another task included.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// After a failed read, requests leave the next one to the poll for this long.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The age up to which the contents of caches are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalenessBounds {
    /// The time after a read of the feed after which it is read again before an answer is given. It bounds how long a
    /// change made elsewhere can go unseen while the store can be read.
    pub recheck_after: Duration,
    /// The time after a read of the feed for which caches are used while it cannot be read again.
    pub max_stale: Duration,
}

/// The version of keys that the process knows, and whether it may be behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeysVersion {
    /// Another one after every change of the key counter, also where it fell: a store that was restored from a backup
    /// counts on from where the backup was.
    pub number: u64,
    /// True where the feed cannot be read: changes since the last read are unknown.
    pub is_stale: bool,
}

/// Knows the newest counters of the change feed, and their age.
///
/// The contents of caches are used for `recheck_after` since the counters were last read. Beyond that the counters are
/// read again before an answer is given; where that fails, caches are used until `max_stale`, then there is no answer.
pub struct ChangeWatcher {
    feed: Arc<dyn ChangeFeed>,
    clock: Arc<dyn Clock>,
    bounds: StalenessBounds,
    keys: AtomicU64,
    /// Changes of `keys` that this process saw.
    keys_number: AtomicU64,
    observability: AtomicU64,
    /// Nanoseconds of the monotonic clock at which the last successful read began; 0 means never.
    read_at: AtomicU64,
    /// Nanoseconds of the monotonic clock at which the last failed read ended; 0 means never.
    failed_at: AtomicU64,
    /// Held by whoever reads the feed, so that a crowd reads it once.
    reading: Mutex<()>,
}

impl ChangeWatcher {
    /// Wires the ports.
    pub fn new(feed: Arc<dyn ChangeFeed>, clock: Arc<dyn Clock>, bounds: StalenessBounds) -> Self {
        let never = || AtomicU64::new(0);
        Self {
            feed,
            clock,
            bounds,
            keys: never(),
            keys_number: never(),
            observability: never(),
            read_at: never(),
            failed_at: never(),
            reading: Mutex::new(()),
        }
    }

    /// The key counter: not older than `recheck_after`, or stale and not older than `max_stale`.
    ///
    /// # Errors
    /// The counters are too old and cannot be read now.
    pub async fn keys_version(&self) -> Result<KeysVersion, StoreError> {
        let mut is_stale = false;
        if !self.is_within(self.bounds.recheck_after) {
            let has_failed = self.has_failed_recently() && self.is_usable();
            let read = if has_failed { None } else { Some(self.read_if_old().await) };
            match read {
                Some(Ok(())) => {}
                Some(Err(error)) if !self.is_usable() => return Err(error),
                _ => is_stale = true,
            }
        }
        Ok(KeysVersion { number: self.keys_number.load(Ordering::Acquire), is_stale })
    }

    /// The version of keys, read now.
    ///
    /// # Errors
    /// The counters cannot be read.
    pub async fn refresh_keys(&self) -> Result<u64, StoreError> {
        self.refresh().await.map(|_| self.keys_number.load(Ordering::Acquire))
    }

    /// True while requests of known keys are served: the counters were read at most `max_stale` ago.
    pub fn is_usable(&self) -> bool {
        self.is_within(self.bounds.max_stale)
    }

    /// The counter of destinations as it was last read; `None` before the first read.
    pub fn observability_version(&self) -> Option<u64> {
        let was_read = self.read_at.load(Ordering::Acquire) != 0;
        was_read.then(|| self.observability.load(Ordering::Acquire))
    }

    /// Reads the counters now.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn refresh(&self) -> Result<ChangeVersions, StoreError> {
        let read = async {
            let _reading = self.reading.lock().await;
            self.read().await
        };
        self.bounded(read).await
    }

    /// Follows the feed until cancelled: reads it every `poll_every` and reloads the catalogue when it changed. A
    /// read that fails is tried again at the next turn; it is logged when the feed goes and when it comes back.
    pub async fn run(&self, poll_every: Duration, catalogue: Arc<LiveCatalogue>, cancelled: CancellationToken) {
        let mut away = false;
        loop {
            let turn = async {
                let versions = self.refresh().await?;
                catalogue.reload_if_changed(versions.catalogue).await
            };
            match turn.await {
                Ok(()) if away => {
                    away = false;
                    tracing::info!("the change feed is back");
                }
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(error = &error as &dyn std::error::Error, "the change feed cannot be read");
                }
                // As before: one line a change, not one a poll.
                _ => {}
            }
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = tokio::time::sleep(poll_every) => {}
            }
        }
    }

    /// Reads the counters, unless another task did in between.
    async fn read_if_old(&self) -> Result<(), StoreError> {
        let read = async {
            let _reading = self.reading.lock().await;
            if self.is_within(self.bounds.recheck_after) { Ok(()) } else { self.read().await.map(drop) }
        };
        self.bounded(read).await
    }

    /// Bounds a read in time: a store that hangs is one that cannot be read.
    async fn bounded<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let read = tokio::time::timeout(READ_WITHIN, read).await;
        let read = read.unwrap_or_else(|_| Err(StoreError::unavailable("the change feed was not read in time")));
        if read.is_err() {
            self.failed_at.fetch_max(nanos(self.clock.monotonic()).max(1), Ordering::AcqRel);
        }
        read
    }

    fn is_within(&self, bound: Duration) -> bool {
        self.is_recent(&self.read_at, bound)
    }

    /// True where the last read failed, and a moment ago.
    fn has_failed_recently(&self) -> bool {
        let is_last = self.failed_at.load(Ordering::Acquire) > self.read_at.load(Ordering::Acquire);
        is_last && self.is_recent(&self.failed_at, RETRY_AFTER)
    }

    fn is_recent(&self, event: &AtomicU64, bound: Duration) -> bool {
        let at = event.load(Ordering::Acquire);
        at != 0 && nanos(self.clock.monotonic()).saturating_sub(at) <= nanos(bound)
    }

    /// To be called by one task at a time: with the lock of `reading`.
    async fn read(&self) -> Result<ChangeVersions, StoreError> {
        let began = nanos(self.clock.monotonic()).max(1);
        let versions = self.feed.versions().await?;
        // Counters before the time: whoever sees the new time sees the new counters.
        let before = self.keys.swap(versions.keys, Ordering::AcqRel);
        if before != versions.keys {
            self.keys_number.fetch_add(1, Ordering::AcqRel);
        }
        if versions.keys < before {
            tracing::warn!(before, now = versions.keys, "the database is older than it was: keys are read anew");
        }
        self.observability.store(versions.observability, Ordering::Release);
        self.read_at.fetch_max(began, Ordering::AcqRel);
        Ok(versions)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
