//! Follows the change feed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::change_feed::{ChangeFeed, ChangePosition, Changes};
use domain::error::StoreError;
use domain::system::Clock;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::LiveCatalogue;
use crate::changed::{Changed, DropChanged};

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

/// Whether caches may lack changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Changes of up to `recheck_after` ago were dropped.
    Current,
    /// The feed cannot be read: changes since the last read are unknown.
    Stale,
}

/// Follows the change feed, and drops from the attached caches what changes name.
///
/// Caches are used for `recheck_after` since the feed was last read. Beyond that the feed is read again before an answer
/// is given; where that fails, caches are used until `max_stale`, then there is no answer.
pub struct ChangeWatcher {
    feed: Arc<dyn ChangeFeed>,
    clock: Arc<dyn Clock>,
    bounds: StalenessBounds,
    caches: std::sync::Mutex<Vec<Arc<dyn DropChanged>>>,
    /// The changes of the catalogue that this process saw.
    catalogue: AtomicU64,
    /// The changes of destinations that this process saw.
    destinations: AtomicU64,
    /// Nanoseconds of the monotonic clock at which the last successful read began; 0 means never.
    read_at: AtomicU64,
    /// Nanoseconds of the monotonic clock at which the last failed read ended; 0 means never.
    failed_at: AtomicU64,
    /// The newest change that was dropped. Held by whoever reads the feed, so that a crowd reads it once.
    reading: Mutex<Option<ChangePosition>>,
}

impl ChangeWatcher {
    /// Wires the ports.
    pub fn new(feed: Arc<dyn ChangeFeed>, clock: Arc<dyn Clock>, bounds: StalenessBounds) -> Self {
        let never = || AtomicU64::new(0);
        Self {
            feed,
            clock,
            bounds,
            caches: std::sync::Mutex::default(),
            catalogue: never(),
            destinations: never(),
            read_at: never(),
            failed_at: never(),
            reading: Mutex::default(),
        }
    }

    /// Has an empty cache drop changes from now on.
    pub(crate) fn attach(&self, cache: Arc<dyn DropChanged>) {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
    }

    /// Whether caches lack changes of more than `recheck_after` ago; reads the feed where that is not known.
    ///
    /// # Errors
    /// The last read is too old, and the feed cannot be read now.
    pub async fn freshness(&self) -> Result<Freshness, StoreError> {
        if self.is_within(self.bounds.recheck_after) {
            return Ok(Freshness::Current);
        }
        if self.has_failed_recently() && self.is_usable() {
            return Ok(Freshness::Stale);
        }
        match self.read_if_old().await {
            Ok(()) => Ok(Freshness::Current),
            Err(error) if !self.is_usable() => Err(error),
            Err(_) => Ok(Freshness::Stale),
        }
    }

    /// True while requests of known keys are served: the counters were read at most `max_stale` ago.
    pub fn is_usable(&self) -> bool {
        self.is_within(self.bounds.max_stale)
    }

    /// The version of the catalogue in this process: another one after every change that was seen.
    pub fn catalogue_version(&self) -> u64 {
        self.catalogue.load(Ordering::Acquire)
    }

    /// The version of destinations in this process: another one after every change that was seen.
    pub fn destinations_version(&self) -> u64 {
        self.destinations.load(Ordering::Acquire)
    }

    /// Reads the feed now.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let read = async { self.read(&mut *self.reading.lock().await).await };
        self.bounded(read).await
    }

    /// Follows the feed until cancelled: reads it every `poll_every` and reloads the catalogue when it changed. A
    /// read that fails is tried again at the next turn; it is logged when the feed goes and when it comes back.
    pub async fn run(&self, poll_every: Duration, catalogue: Arc<LiveCatalogue>, cancelled: CancellationToken) {
        let mut away = false;
        loop {
            let turn = async {
                self.refresh().await?;
                catalogue.reload_if_changed(self.catalogue_version()).await
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

    /// Reads the feed, unless another task did in between.
    async fn read_if_old(&self) -> Result<(), StoreError> {
        let read = async {
            let mut last = self.reading.lock().await;
            if self.is_within(self.bounds.recheck_after) { Ok(()) } else { self.read(&mut last).await }
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

    /// Drops the changes after `last`, and moves it on.
    async fn read(&self, last: &mut Option<ChangePosition>) -> Result<(), StoreError> {
        let began = nanos(self.clock.monotonic()).max(1);
        let changes = self.feed.changes_since(*last).await?;
        // No await from here on: dropping entries and storing the position happen together.
        match changes {
            Changes::These(changes) => {
                if let Some(newest) = changes.last() {
                    self.drop_changed(&Changed::of(&changes));
                    *last = Some(newest.position);
                }
            }
            Changes::StartOver(newest) => {
                if let Some(last) = last {
                    tracing::warn!(last.number, newest.number, "change feed does not continue: caches dropped");
                }
                self.drop_changed(&Changed::Everything);
                *last = Some(newest);
            }
        }
        // Caches before the time: whoever sees the new time finds nothing that changed before it.
        self.read_at.fetch_max(began, Ordering::AcqRel);
        Ok(())
    }

    fn drop_changed(&self, changed: &Changed) {
        for cache in &*self.caches.lock().unwrap_or_else(PoisonError::into_inner) {
            cache.drop_changed(changed);
        }
        for (is_changed, version) in
            [(changed.has_catalogue(), &self.catalogue), (changed.has_destinations(), &self.destinations)]
        {
            version.fetch_add(u64::from(is_changed), Ordering::AcqRel);
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
