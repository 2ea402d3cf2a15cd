//! The follower of the change feed, and the cache invalidations from one read of it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use domain::change_feed::{Change, ChangeFeed, ChangePosition, ChangeSignal, ChangeSubject, Changes};
use domain::error::StoreError;
use domain::ids::{GuardrailId, PresetId, WorkspaceId};
use domain::secret::ApiKeyHash;
use domain::system::Clock;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{LiveCatalogue, LivePauses};

/// The longest duration of a read of the feed, including the wait for a concurrent one.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// The time after a failed read during which requests do not read the feed and leave it to the poll.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The age limits of cached data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StalenessBounds {
    /// The age of the last read of the feed after which it is read again before an answer. It bounds how long a change
    /// elsewhere stays unseen while the store is readable.
    pub recheck_after: Duration,
    /// The age of the last read of the feed up to which caches are used while the feed cannot be read.
    pub max_stale: Duration,
}

/// The freshness of cached data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// All changes up to `recheck_after` ago are applied.
    Current,
    /// The feed cannot be read: changes since the last read are unknown.
    Stale,
}

/// Follows the change feed, and drops changed entries from the attached caches.
///
/// Caches are used for `recheck_after` since the last read of the feed. After that the feed is read again before an
/// answer. If that fails, caches are used until `max_stale`; then requests fail.
pub struct ChangeWatcher {
    feed: Arc<dyn ChangeFeed>,
    clock: Arc<dyn Clock>,
    bounds: StalenessBounds,
    caches: std::sync::Mutex<Vec<Arc<dyn DropChanged>>>,
    /// The number of catalogue changes that this process saw.
    catalogue: AtomicU64,
    /// The number of destination changes that this process saw.
    destinations: AtomicU64,
    /// The number of changes of paused providers that this process saw.
    providers: AtomicU64,
    /// Monotonic start time of the last successful read, in nanoseconds; 0 means never.
    read_at: AtomicU64,
    /// Monotonic end time of the last failed read, in nanoseconds; 0 means never.
    failed_at: AtomicU64,
    /// The newest applied change. The lock is held during a read of the feed, so that concurrent requests share one
    /// read.
    reading: Mutex<Option<ChangePosition>>,
}

impl ChangeWatcher {
    /// Creates the watcher.
    pub fn new(feed: Arc<dyn ChangeFeed>, clock: Arc<dyn Clock>, bounds: StalenessBounds) -> Self {
        let never = || AtomicU64::new(0);
        Self {
            feed,
            clock,
            bounds,
            caches: std::sync::Mutex::default(),
            catalogue: never(),
            destinations: never(),
            providers: never(),
            read_at: never(),
            failed_at: never(),
            reading: Mutex::default(),
        }
    }

    /// Attaches an empty cache to receive changes from now on.
    pub(crate) fn attach(&self, cache: Arc<dyn DropChanged>) {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
    }

    /// Returns the freshness of caches; reads the feed if the last read is older than `recheck_after`.
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

    /// Returns true while requests of known keys are served: the feed was read at most `max_stale` ago.
    pub fn is_usable(&self) -> bool {
        self.is_within(self.bounds.max_stale)
    }

    /// Returns the catalogue version in this process. It changes with every observed change.
    pub fn catalogue_version(&self) -> u64 {
        self.catalogue.load(Ordering::Acquire)
    }

    /// Returns the destination version in this process. It changes with every observed change.
    pub fn destinations_version(&self) -> u64 {
        self.destinations.load(Ordering::Acquire)
    }

    /// Returns the version of the paused providers in this process. It changes with every observed change.
    pub fn providers_version(&self) -> u64 {
        self.providers.load(Ordering::Acquire)
    }

    /// Reads the feed now.
    ///
    /// # Errors
    /// The feed cannot be read.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let read = async { self.read(&mut *self.reading.lock().await).await };
        self.bounded(read).await
    }

    /// Follows the feed until cancelled: reads it at each signal and reloads a changed catalogue and pauses. A failed read
    /// is retried in the next cycle. Failure and recovery are logged once.
    pub async fn run(
        &self,
        signal: Arc<dyn ChangeSignal>,
        catalogue: Arc<LiveCatalogue>,
        pauses: Arc<LivePauses>,
        cancelled: CancellationToken,
    ) {
        let mut away = false;
        loop {
            let turn = async {
                self.refresh().await?;
                pauses.reload_if_changed(self.providers_version()).await?;
                catalogue.reload_if_changed(self.catalogue_version()).await
            };
            match turn.await {
                Ok(()) if away => {
                    away = false;
                    tracing::info!("change feed recovered");
                }
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(error = &error as &dyn std::error::Error, "change feed not readable");
                }
                // Unchanged state: log changes only, not every poll.
                _ => {}
            }
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = signal.wait() => {}
            }
        }
    }

    /// Reads the feed, unless another task did in the meantime.
    async fn read_if_old(&self) -> Result<(), StoreError> {
        let read = async {
            let mut last = self.reading.lock().await;
            if self.is_within(self.bounds.recheck_after) { Ok(()) } else { self.read(&mut last).await }
        };
        self.bounded(read).await
    }

    /// Applies a timeout to a read: a hanging store counts as unreadable.
    async fn bounded<T>(&self, read: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let read = tokio::time::timeout(READ_WITHIN, read).await;
        let read = read.unwrap_or_else(|_| Err(StoreError::unavailable("change feed not read in time")));
        if read.is_err() {
            self.failed_at.fetch_max(nanos(self.clock.monotonic()).max(1), Ordering::AcqRel);
        }
        read
    }

    fn is_within(&self, bound: Duration) -> bool {
        self.is_recent(&self.read_at, bound)
    }

    /// Returns true if the last read failed a short time ago.
    fn has_failed_recently(&self) -> bool {
        let is_last = self.failed_at.load(Ordering::Acquire) > self.read_at.load(Ordering::Acquire);
        is_last && self.is_recent(&self.failed_at, RETRY_AFTER)
    }

    fn is_recent(&self, event: &AtomicU64, bound: Duration) -> bool {
        let at = event.load(Ordering::Acquire);
        at != 0 && nanos(self.clock.monotonic()).saturating_sub(at) <= nanos(bound)
    }

    /// Applies the changes after `last`, and advances it.
    async fn read(&self, last: &mut Option<ChangePosition>) -> Result<(), StoreError> {
        let began = nanos(self.clock.monotonic()).max(1);
        let changes = self.feed.changes_since(*last).await?;
        // No await from here on: dropping entries and storing the position must be atomic.
        match changes {
            Changes::Continued(changes) => {
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
        // Drop entries before updating the time: a reader of the new time must not find older entries.
        self.read_at.fetch_max(began, Ordering::AcqRel);
        Ok(())
    }

    fn drop_changed(&self, changed: &Changed) {
        for cache in &*self.caches.lock().unwrap_or_else(PoisonError::into_inner) {
            cache.drop_changed(changed);
        }
        for (is_changed, version) in [
            (changed.has_catalogue(), &self.catalogue),
            (changed.has_destinations(), &self.destinations),
            (changed.has_providers(), &self.providers),
        ] {
            version.fetch_add(u64::from(is_changed), Ordering::AcqRel);
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The cache entries that a set of changes makes outdated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Every entry.
    Everything,
    /// The subjects that the changes name.
    Named {
        keys: HashSet<ApiKeyHash>,
        workspaces: HashSet<WorkspaceId>,
        guardrails: HashSet<GuardrailId>,
        presets: HashSet<PresetId>,
        catalogue: bool,
        destinations: bool,
        providers: bool,
    },
}

/// A cache that drops changed entries.
pub(crate) trait DropChanged: Send + Sync {
    /// Drops changed entries, and discards pending reads of them that began earlier.
    fn drop_changed(&self, changed: &Changed);
}

impl Changed {
    pub(crate) fn of(changes: &[Change]) -> Self {
        let (mut keys, mut workspaces, mut guardrails) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut presets = HashSet::new();
        let (mut catalogue, mut destinations, mut providers) = (false, false, false);
        for change in changes {
            match change.subject {
                ChangeSubject::Key(hash) => drop(keys.insert(hash)),
                ChangeSubject::Workspace(id) => drop(workspaces.insert(id)),
                ChangeSubject::Guardrail(id) => drop(guardrails.insert(id)),
                ChangeSubject::Preset(id) => drop(presets.insert(id)),
                ChangeSubject::Catalogue => catalogue = true,
                ChangeSubject::Destinations => destinations = true,
                ChangeSubject::Providers => providers = true,
                ChangeSubject::Everything => return Self::Everything,
            }
        }
        Self::Named { keys, workspaces, guardrails, presets, catalogue, destinations, providers }
    }

    pub(crate) fn has_catalogue(&self) -> bool {
        matches!(self, Self::Everything | Self::Named { catalogue: true, .. })
    }

    pub(crate) fn has_destinations(&self) -> bool {
        matches!(self, Self::Everything | Self::Named { destinations: true, .. })
    }

    pub(crate) fn has_providers(&self) -> bool {
        matches!(self, Self::Everything | Self::Named { providers: true, .. })
    }
}
