//! One delivery to one destination, and the settings of deliveries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId};
use crate::observability::{
    Delivery, DeliveryError, DeliveryErrorKind, Destination, DestinationRepository, DueMessage, MessageSender, Outbox,
};
use crate::system::{Randomness, TimeSource};

/// The most payload bytes of one delivery.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// The pause of a destination that is disabled or deleted.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(5);
/// How long messages to the operator's collector wait for a process that has it configured.
const ORPHAN_AGE: TimeDelta = TimeDelta::hours(1);

/// The ports of [`super::DeliverOutbox`].
pub struct DeliverOutboxPorts {
    /// The outbox.
    pub outbox: Arc<dyn Outbox>,
    /// The destinations.
    pub destinations: Arc<dyn DestinationRepository>,
    /// The sender.
    pub sender: Arc<dyn MessageSender>,
    /// The clock that decides which messages are due, and the timer of the pauses.
    pub time: TimeSource,
    /// The source of jitter.
    pub random: Arc<dyn Randomness>,
}

/// The outcome of one delivery.
#[derive(Debug)]
pub(super) enum DeliveryOutcome {
    /// The number of delivered messages.
    Delivered(u64),
    /// No message was due.
    Nothing,
    /// The destination is disabled or deleted.
    Paused(Duration),
    /// The destination rejected the body; its messages are sent one by one.
    RetryOneByOne,
    /// The destination rejected one message; others may be accepted.
    Rejected {
        /// Messages that became dead letters.
        dead: u64,
        /// The reason, in our own words.
        reason: String,
    },
    /// The destination was unreachable or busy.
    Unreachable {
        /// Messages that became dead letters.
        dead: u64,
        /// The reason, in our own words.
        reason: String,
    },
}

/// Delivers due messages to one destination.
pub(super) struct DeliverBatch {
    pub(super) ports: DeliverOutboxPorts,
    pub(super) settings: DeliverySettings,
}

impl DeliverBatch {
    /// Takes up to `batch_size` due messages of a destination and sends them. It was not reached `failures` times in a
    /// row before.
    pub(super) async fn execute(
        &self,
        id: DestinationId,
        batch_size: u64,
        failures: u32,
    ) -> Result<DeliveryOutcome, StoreError> {
        let now = self.ports.time.now();
        let Some(destination) = self.destination(id).await? else {
            let before = if id == Destination::OPERATORS { now - ORPHAN_AGE } else { now };
            self.ports.outbox.discard(id, before).await?;
            return Ok(DeliveryOutcome::Paused(UNAVAILABLE_PAUSE));
        };
        if !destination.enabled {
            return Ok(DeliveryOutcome::Paused(UNAVAILABLE_PAUSE));
        }
        let taken = self.ports.outbox.take(id, now, self.settings.lease, batch_size, MAX_BATCH_BYTES).await?;
        if taken.is_empty() {
            return Ok(DeliveryOutcome::Nothing);
        }
        let ids: Vec<OutboxId> = taken.iter().map(|due| due.message.id).collect();
        let traces = taken.iter().map(|due| due.message.payload.clone()).collect();
        let delivery = Delivery { ids, traces, is_test: false };
        match self.ports.sender.send(&destination, &delivery).await {
            Ok(()) => {
                self.ports.outbox.delivered(&delivery.ids).await?;
                Ok(DeliveryOutcome::Delivered(delivery.ids.len() as u64))
            }
            Err(failed) if failed.kind == DeliveryErrorKind::Body => self.rejected(&delivery.ids, &taken, failed).await,
            Err(failed) => self.unreachable(&destination, &taken, failed, failures.saturating_add(1)).await,
        }
    }

    async fn destination(&self, id: DestinationId) -> Result<Option<Destination>, StoreError> {
        if id == Destination::OPERATORS {
            return Ok(self.settings.operators.clone());
        }
        self.ports.destinations.find(id).await
    }

    async fn rejected(
        &self,
        ids: &[OutboxId],
        taken: &[DueMessage],
        failed: DeliveryError,
    ) -> Result<DeliveryOutcome, StoreError> {
        if ids.len() > 1 {
            self.ports.outbox.postponed(ids, self.ports.time.now()).await?;
            return Ok(DeliveryOutcome::RetryOneByOne);
        }
        let dead = self.failed(taken, &failed).await?;
        Ok(DeliveryOutcome::Rejected { dead, reason: failed.reason })
    }

    /// Pauses the destination, which was not reached `failures` times in a row: its other messages would fail as well.
    async fn unreachable(
        &self,
        destination: &Destination,
        taken: &[DueMessage],
        failed: DeliveryError,
        failures: u32,
    ) -> Result<DeliveryOutcome, StoreError> {
        let dead = self.failed(taken, &failed).await?;
        let wait = self.settings.wait(failures, failed.retry_after, self.ports.random.next_u64());
        if let Some(until) = after(self.ports.time.now(), wait) {
            self.ports.outbox.pause(destination, until).await?;
        }
        Ok(DeliveryOutcome::Unreachable { dead, reason: failed.reason })
    }

    /// Records the failure of each message. Returns the number of those that became dead letters.
    async fn failed(&self, taken: &[DueMessage], failed: &DeliveryError) -> Result<u64, StoreError> {
        let now = self.ports.time.now();
        let mut by_failures: BTreeMap<u32, Vec<OutboxId>> = BTreeMap::new();
        for due in taken {
            by_failures.entry(due.failures.saturating_add(1)).or_default().push(due.message.id);
        }
        let mut dead = 0;
        for (failures, ids) in by_failures {
            let next = self.next_attempt(now, failures, failed);
            self.ports.outbox.failed(&ids, next, &failed.reason).await?;
            dead += if next.is_none() { ids.len() as u64 } else { 0 };
        }
        Ok(dead)
    }

    /// Returns when a failed message is due again; `None` if it becomes a dead letter.
    fn next_attempt(&self, now: DateTime<Utc>, failures: u32, failed: &DeliveryError) -> Option<DateTime<Utc>> {
        if failed.kind == DeliveryErrorKind::Address || failures >= self.settings.max_attempts {
            return None;
        }
        after(now, self.settings.wait(failures, failed.retry_after, self.ports.random.next_u64()))
    }
}

fn after(now: DateTime<Utc>, wait: Duration) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::from_std(wait).ok()?)
}

/// The longest `Retry-After` of a destination that is respected.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// The settings of delivery.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// Failures after which a message becomes a dead letter, at least 1.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub retry_initial_delay: Duration,
    /// The longest wait.
    pub retry_max_delay: Duration,
    /// How long a taken message is reserved for its taker: longer than a delivery may take.
    pub lease: Duration,
    /// The time between two polls of an idle outbox.
    pub poll_every: Duration,
    /// How long running deliveries are awaited at shutdown.
    pub grace: Duration,
    /// The operator's collector.
    pub operators: Option<Destination>,
}

impl DeliverySettings {
    /// Returns twelve attempts over about half an hour, for a sender with this timeout.
    pub fn new(timeout: Duration) -> Self {
        Self {
            max_attempts: 12,
            retry_initial_delay: Duration::from_secs(1),
            retry_max_delay: Duration::from_mins(5),
            lease: timeout.saturating_mul(2).saturating_add(Duration::from_secs(1)),
            poll_every: Duration::from_millis(500),
            grace: Duration::from_secs(3),
            operators: None,
        }
    }

    /// Returns the delay after consecutive failures: it doubles, minus up to 50 % jitter, so that destinations that
    /// failed together are not retried together. It is never shorter than the destination asked for. `random` is a
    /// number, uniform over all 64 bits.
    pub(super) fn wait(&self, failures: u32, asked: Option<Duration>, random: u64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let whole = self.retry_initial_delay.saturating_mul(1 << doublings).min(self.retry_max_delay);
        let half = whole / 2;
        let thousandths = u32::try_from(random % 1_001).unwrap_or(0);
        let drawn = half + half / 1_000 * thousandths;
        asked.map_or(drawn, |asked| drawn.max(asked.min(MAX_RETRY_AFTER)))
    }
}
