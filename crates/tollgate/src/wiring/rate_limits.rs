//! The rate limiter: on a server for all replicas, or in this process by its share.

use std::sync::Arc;
use std::time::Duration;

use adapters_storage::SeaOrmBudgetStore;
use adapters_system::LocalRateLimiter;
use adapters_valkey::{Fallback, RateStoreStatus, ValkeyRateLimiter};
use anyhow::Context;
use async_trait::async_trait;
use domain::budget::{BudgetStore, LiveProcess, RenewingLedger};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::rate::{RateLimiter, ReplicaCount};
use domain::system::HealthProbe;

use super::background::heartbeat;
use super::{Background, Stores};
use crate::config::{Config, OnRateStoreFailure, RateLimitsConfig};

/// The interval in which the live processes are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// The missed heartbeats after which a process no longer counts.
const MISSED_HEARTBEATS: u32 = 3;

/// The rate limiter of this process.
pub struct RateLimits {
    /// The limiter.
    pub limiter: Arc<dyn RateLimiter>,
    /// The shared limiter, if one is configured.
    pub shared: Option<ValkeyRateLimiter>,
    /// The number of replicas that the limits are divided by where they are counted locally.
    pub replicas: ReplicaCount,
}

impl RateLimits {
    /// Builds the limiter, and starts the task of the shared one, which logs an outage.
    ///
    /// # Errors
    /// The server of `rate_limits.url` rejects the settings.
    pub async fn start(config: &Config, stores: &Stores, background: &Background) -> anyhow::Result<Self> {
        let local = Self::local(stores);
        let Some(shared) = &config.rate_limits else { return Ok(local) };
        let shared = connect(shared, local.limiter, background).await?;
        let (keeping, clock) = (shared.clone(), Arc::clone(&stores.clock));
        background.tasks.spawn(keeping.keep_connected(clock, background.cancelled.clone()));
        Ok(Self { limiter: Arc::new(shared.clone()), shared: Some(shared), replicas: local.replicas })
    }

    /// Builds the limiter of this process alone.
    pub fn local(stores: &Stores) -> Self {
        let replicas = ReplicaCount::default();
        let limiter = Arc::new(LocalRateLimiter::new(Arc::clone(&stores.clock), replicas.clone()));
        Self { limiter, shared: None, replicas }
    }

    /// Counts the live processes of the database now, and every second: this one always, the others while they are
    /// seen. Call it after the recovery of dead processes, which would count.
    pub async fn count_replicas(
        &self,
        ledger: Arc<RenewingLedger>,
        config: &Config,
        stores: &Stores,
        background: &Background,
    ) {
        let store = SeaOrmBudgetStore::new(stores.database.clone());
        let silence = heartbeat(config) * MISSED_HEARTBEATS;
        let (replicas, cancelled) = (self.replicas.clone(), background.cancelled.clone());
        count_once(&store, ledger.process(), silence, &replicas).await;
        background.tasks.spawn(async move {
            while cancelled.run_until_cancelled(tokio::time::sleep(COUNT_EVERY)).await.is_some() {
                count_once(&store, ledger.process(), silence, &replicas).await;
            }
        });
    }
}

async fn connect(
    config: &RateLimitsConfig,
    local: Arc<dyn RateLimiter>,
    background: &Background,
) -> anyhow::Result<ValkeyRateLimiter> {
    let fallback = match config.on_failure {
        OnRateStoreFailure::Local => Fallback::Local(local),
        OnRateStoreFailure::Reject => Fallback::Reject,
    };
    let settings = config.settings()?;
    let connected = ValkeyRateLimiter::connect(&settings, fallback, background.tasks.clone()).await;
    connected.context("the server of rate_limits.url cannot be used; without that key each replica limits by its share")
}

/// Checks that the server of `rate_limits.url` can be used, and returns its name.
///
/// # Errors
/// The server cannot be used.
pub async fn check_rate_store(config: &RateLimitsConfig) -> anyhow::Result<String> {
    let settings = config.settings()?;
    let limiter = ValkeyRateLimiter::connect(&settings, Fallback::Reject, tokio_util::task::TaskTracker::new()).await?;
    limiter.status().outage.map_or_else(|| Ok(settings.name()), |outage| Err(anyhow::anyhow!(outage)))
}

/// Checks the files of certificates of `[rate_limits]`, without a connection.
///
/// # Errors
/// A file cannot be used.
pub fn check_rate_store_files(config: &RateLimitsConfig) -> anyhow::Result<()> {
    Ok(ValkeyRateLimiter::check(&config.store)?)
}

/// A failure leaves the last count.
async fn count_once(store: &dyn BudgetStore, own: ProcessId, silence: Duration, replicas: &ReplicaCount) {
    match store.live_processes().await {
        Ok(live) => replicas.set(count(&live, own, silence)),
        Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "live processes not counted"),
    }
}

/// Counts this process and the others that were seen recently. The first count may precede the registration of this
/// process, and it must not have the whole limit until the next one.
fn count(live: &[LiveProcess], own: ProcessId, silence: Duration) -> usize {
    1 + live.iter().filter(|found| found.process != own && found.silent_for <= silence).count()
}

/// Shows an outage of the shared counts. Requests are served without them, or those without limits are.
pub struct RateLimitProbe(pub ValkeyRateLimiter);

#[async_trait]
impl HealthProbe for RateLimitProbe {
    fn name(&self) -> &'static str {
        "rate_limits"
    }

    async fn probe(&self) -> Result<(), StoreError> {
        let RateStoreStatus { outage, .. } = self.0.status();
        outage.map_or(Ok(()), |error| Err(StoreError::unavailable(error)))
    }

    fn serves_during_outage(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn count_includes_recently_seen_processes_and_this_one() {
        let process = |number: u128| ProcessId::from_uuid(uuid::Uuid::from_u128(number));
        let live = |number: u128, seconds| LiveProcess {
            process: process(number),
            seen_at: DateTime::UNIX_EPOCH,
            silent_for: Duration::from_secs(seconds),
        };
        let count = |found: &[LiveProcess]| count(found, process(1), Duration::from_secs(90));
        assert_eq!(count(&[]), 1, "before this process is registered");
        assert_eq!(count(&[live(2, 0)]), 2, "before this process is registered, beside another one");
        assert_eq!(count(&[live(1, 500)]), 1, "this process is live");
        assert_eq!(count(&[live(1, 0), live(2, 90), live(3, 91)]), 2);
    }
}
