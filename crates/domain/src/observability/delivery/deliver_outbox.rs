//! Delivers the outbox to its destinations, and retries dead letters.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

use super::deliver_batch::{DeliverBatch, DeliverOutboxPorts, DeliveryOutcome, DeliverySettings};
use crate::authority::Right;
use crate::change::Change;
use crate::change::MAX_ATTEMPTS;
use crate::error::StoreError;
use crate::ids::DestinationId;
use crate::naming::NameError;
use crate::observability::{DeadLetterRetry, Destination, DestinationError, DestinationRepository, Outbox};
use crate::system::Clock;

/// The most destinations that are served at the same time.
const MAX_CONCURRENT_DELIVERIES: usize = 32;

/// Delivers the messages of the outbox until stopped. Destinations are independent: a slow or unreachable one delays no
/// other, and the delay between its own attempts grows. Several processes may share one outbox.
pub struct DeliverOutbox {
    batch: DeliverBatch,
}

type Deliveries<'a> = FuturesUnordered<BoxFuture<'a, (DestinationId, Result<DeliveryOutcome, StoreError>)>>;

impl DeliverOutbox {
    /// Wires the ports.
    pub fn new(ports: DeliverOutboxPorts, settings: DeliverySettings) -> Self {
        Self { batch: DeliverBatch { ports, settings } }
    }

    /// Delivers until `stopped` ends, then waits up to [`DeliverySettings::grace`] for running deliveries. Undelivered
    /// messages stay in the outbox.
    pub async fn run(&self, stopped: impl Future<Output = ()>) {
        let mut stopped = pin!(stopped.fuse());
        // A start is the only repair of the operator's collector.
        if self.batch.settings.operators.is_some()
            && let Err(error) = self.batch.ports.destinations.resume(Destination::OPERATORS).await
        {
            tracing::debug!(error = &error as &dyn std::error::Error, "the operator's collector stays paused");
        }
        let mut states = DestinationStates::default();
        let mut deliveries: Deliveries<'_> = FuturesUnordered::new();
        loop {
            self.begin(&mut states, &mut deliveries).await;
            let pause = self.batch.ports.time.sleep(self.batch.settings.poll_every);
            let ended = pin!(next_of(&mut deliveries));
            let next = select(ended, pause);
            let ended = match select(&mut stopped, next).await {
                Either::Left(_) => break,
                Either::Right((Either::Left((ended, _)), _)) => ended,
                Either::Right((Either::Right(_), _)) => None,
            };
            if let Some((id, outcome)) = ended {
                self.end(&mut states, id, outcome);
            }
        }
        let grace = self.batch.ports.time.sleep(self.batch.settings.grace);
        let all = async { while deliveries.next().await.is_some() {} };
        select(pin!(all), grace).await;
    }

    /// Starts a delivery to every available destination with due messages. Running deliveries are polled while the
    /// store answers: they may hold the connection that the store needs.
    async fn begin<'a>(&'a self, states: &mut DestinationStates, deliveries: &mut Deliveries<'a>) {
        let free = MAX_CONCURRENT_DELIVERIES.saturating_sub(deliveries.len());
        if free == 0 {
            return;
        }
        let unavailable = states.unavailable(self.batch.ports.time.monotonic());
        let mut ended = Vec::new();
        let mut asked = self.batch.ports.outbox.due(self.batch.ports.time.now(), &unavailable);
        let due = loop {
            match select(asked, pin!(next_of(deliveries))).await {
                Either::Left((due, _)) => break due,
                Either::Right((outcome, still_asked)) => {
                    ended.extend(outcome);
                    asked = still_asked;
                }
            }
        };
        match due {
            Ok(due) => {
                states.store_answers();
                states.forget_idle(&due, self.batch.ports.time.monotonic());
                for id in due.into_iter().take(free) {
                    let state = states.of(id);
                    state.busy = true;
                    let DestinationState { batch_size, failures, .. } = *state;
                    deliveries.push(async move { (id, self.batch.execute(id, batch_size, failures).await) }.boxed());
                }
            }
            Err(error) => states.store_failed(&error),
        }
        for (id, outcome) in ended {
            self.end(states, id, outcome);
        }
    }

    fn end(&self, states: &mut DestinationStates, id: DestinationId, outcome: Result<DeliveryOutcome, StoreError>) {
        let now = self.batch.ports.time.monotonic();
        let state = states.of(id);
        state.busy = false;
        state.paused_until = Duration::ZERO;
        match outcome {
            Ok(DeliveryOutcome::Delivered(messages)) => {
                tracing::debug!(destination.id = %id, messages, "traces delivered");
                if state.failures > 0 {
                    tracing::info!(destination.id = %id, "trace destination recovered");
                }
                state.failures = 0;
                state.grow_batch();
            }
            Ok(DeliveryOutcome::Nothing) => {}
            Ok(DeliveryOutcome::Paused(pause)) => state.paused_until = now.saturating_add(pause),
            Ok(DeliveryOutcome::RetryOneByOne) => state.batch_size = 1,
            Ok(DeliveryOutcome::Rejected { dead, reason }) => {
                tracing::warn!(destination.id = %id, dead_letters = dead, reason, "trace rejected by destination");
            }
            Ok(DeliveryOutcome::Unreachable { dead, reason }) => {
                if state.failures == 0 || dead > 0 {
                    tracing::warn!(destination.id = %id, dead_letters = dead, reason, "trace delivery failed");
                }
                state.failures = state.failures.saturating_add(1);
                state.batch_size = 1;
            }
            Err(error) => {
                state.paused_until = now.saturating_add(self.batch.settings.retry_initial_delay);
                states.store_failed(&error);
            }
        }
    }
}

/// Returns the next delivery that ends. Pends forever while none is running.
async fn next_of(deliveries: &mut Deliveries<'_>) -> Option<(DestinationId, Result<DeliveryOutcome, StoreError>)> {
    match deliveries.next().await {
        Some(ended) => Some(ended),
        None => std::future::pending().await,
    }
}

/// The delivery states of all destinations.
#[derive(Default)]
struct DestinationStates {
    by_destination: HashMap<DestinationId, DestinationState>,
    store_is_away: bool,
}

impl DestinationStates {
    fn of(&mut self, id: DestinationId) -> &mut DestinationState {
        self.by_destination.entry(id).or_default()
    }

    fn unavailable(&self, now: Duration) -> Vec<DestinationId> {
        self.by_destination.iter().filter(|(_, state)| state.is_unavailable(now)).map(|(id, _)| *id).collect()
    }

    /// Forgets destinations without due messages and without failures.
    fn forget_idle(&mut self, due: &[DestinationId], now: Duration) {
        self.by_destination.retain(|id, state| state.is_unavailable(now) || state.failures > 0 || due.contains(id));
    }

    /// One state in the log when the store goes, not one a outcome.
    fn store_failed(&mut self, error: &StoreError) {
        if !self.store_is_away {
            tracing::warn!(error = error as &dyn std::error::Error, "outbox not readable, retrying");
        }
        self.store_is_away = true;
    }

    fn store_answers(&mut self) {
        if self.store_is_away {
            tracing::info!("outbox recovered");
        }
        self.store_is_away = false;
    }
}

/// The most messages of one delivery.
const MAX_BATCH: u64 = 32;

/// The delivery state of one destination in this process.
#[derive(Debug, Clone, Copy)]
struct DestinationState {
    /// True while a delivery is under way.
    busy: bool,
    /// The monotonic time before which the store is not asked again: the destination is disabled, or the store failed.
    paused_until: Duration,
    /// Consecutive deliveries that did not reach the destination.
    failures: u32,
    /// The most messages of the next delivery: one after a failure, so that a rejected message is found; doubled after
    /// each success.
    batch_size: u64,
}

impl Default for DestinationState {
    fn default() -> Self {
        Self { busy: false, paused_until: Duration::ZERO, failures: 0, batch_size: MAX_BATCH }
    }
}

impl DestinationState {
    /// Returns true if nothing may be sent now.
    fn is_unavailable(&self, now: Duration) -> bool {
        self.busy || self.paused_until > now
    }

    fn grow_batch(&mut self) {
        self.batch_size = self.batch_size.saturating_mul(2).min(MAX_BATCH);
    }
}

/// Makes dead letters, and messages that wait after a failure, due again.
pub struct RetryDeadLetters {
    outbox: Arc<dyn Outbox>,
    destinations: Arc<dyn DestinationRepository>,
    clock: Arc<dyn Clock>,
}

impl RetryDeadLetters {
    /// Wires the ports.
    pub fn new(outbox: Arc<dyn Outbox>, destinations: Arc<dyn DestinationRepository>, clock: Arc<dyn Clock>) -> Self {
        Self { outbox, destinations, clock }
    }

    /// Makes the dead letters and the waiting messages of a destination due now, and returns their number. A caller who sees all workspaces may
    /// name a destination that is not stored: the operator's collector, or a deleted one that left some.
    ///
    /// # Errors
    /// A missing right; a destination that does not exist for the caller, or has a version that the caller does not
    /// accept; concurrent changes of it; the store. Then nothing is changed.
    pub async fn execute(&self, change: &Change<'_, u64>, id: DestinationId) -> Result<u64, DestinationError> {
        let by = change.by();
        by.check(Right::Write)?;
        for _ in 0..MAX_ATTEMPTS {
            let found = self.destinations.find(id).await?.filter(|found| by.sees(found.workspace_id));
            if found.is_none() && (change.is_conditional() || !by.sees_all()) {
                return Err(NameError::Unknown.into());
            }
            change.check_version(found.as_ref().map(Destination::version))?;
            let retry = DeadLetterRetry { actor: by.actor().clone(), destination: id, seen: found };
            match self.outbox.retry_dead_letters(&retry, self.clock.now()).await? {
                Some(0) if retry.seen.is_none() && id != Destination::OPERATORS => {
                    return Err(NameError::Unknown.into());
                }
                Some(retried) => return Ok(retried),
                // The destination was changed since, or deleted.
                None => {}
            }
        }
        Err(DestinationError::Changed)
    }
}
