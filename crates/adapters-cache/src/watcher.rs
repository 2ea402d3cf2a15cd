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

/// Knows the newest counters of the change feed, and how old that knowledge is.
///
/// What a process keeps in memory is trusted for `stale_after` since the counters were last read. Beyond that they
/// are read again before an answer is given; where that fails, there is no answer.
pub struct ChangeWatcher {
    feed: Arc<dyn ChangeFeed>,
    clock: Arc<dyn Clock>,
    stale_after: Duration,
    keys: AtomicU64,
    observability: AtomicU64,
    /// Nanoseconds of the monotonic clock at which the last successful read began; 0 means never.
    read_at: AtomicU64,
    /// Held by whoever reads the feed, so that a crowd reads it once.
    reading: Mutex<()>,
}

impl ChangeWatcher {
    /// Wires the ports. `stale_after` bounds how long a change made elsewhere can go unseen.
    pub fn new(feed: Arc<dyn ChangeFeed>, clock: Arc<dyn Clock>, stale_after: Duration) -> Self {
        let never = || AtomicU64::new(0);
        Self {
            feed,
            clock,
            stale_after,
            keys: never(),
            observability: never(),
            read_at: never(),
            reading: Mutex::new(()),
        }
    }

    /// The key counter, never older than `stale_after`.
    ///
    /// # Errors
    /// The counters are too old and cannot be read now.
    pub async fn keys_version(&self) -> Result<u64, StoreError> {
        if !self.is_fresh() {
            let _reading = self.reading.lock().await;
            // Somebody else may have read while this one waited.
            if !self.is_fresh() {
                self.read().await?;
            }
        }
        Ok(self.keys.load(Ordering::Acquire))
    }

    /// The counter of destinations as it was last read.
    pub fn observability_version(&self) -> u64 {
        self.observability.load(Ordering::Acquire)
    }

    /// Reads the counters now.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn refresh(&self) -> Result<ChangeVersions, StoreError> {
        let _reading = self.reading.lock().await;
        self.read().await
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

    fn is_fresh(&self) -> bool {
        let read_at = self.read_at.load(Ordering::Acquire);
        read_at != 0 && nanos(self.clock.monotonic()).saturating_sub(read_at) <= nanos(self.stale_after)
    }

    async fn read(&self) -> Result<ChangeVersions, StoreError> {
        let began = nanos(self.clock.monotonic()).max(1);
        let versions = self.feed.versions().await?;
        // Counters before the time: whoever sees the new time sees the new counters.
        self.keys.fetch_max(versions.keys, Ordering::AcqRel);
        self.observability.fetch_max(versions.observability, Ordering::AcqRel);
        self.read_at.fetch_max(began, Ordering::AcqRel);
        Ok(versions)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
