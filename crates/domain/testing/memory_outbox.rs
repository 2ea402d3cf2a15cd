//! The outbox in memory.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::memory_state::{State, StoredMessage};
use super::memory_store::MemoryOutbox;
use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId};
use crate::observability::{DeadLetterRetry, Destination, DueMessage, Outbox, OutboxStatus};
use crate::usage::OutboxMessage;

impl StoredMessage {
    fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.next_at.is_some_and(|next| next <= now)
    }
}

impl State {
    /// Adds messages to the outbox, in the transaction of a charge.
    pub(super) fn enqueue(&mut self, messages: Vec<OutboxMessage>, at: DateTime<Utc>) {
        let keep = |message| StoredMessage { message, failures: 0, created_at: at, next_at: Some(at) };
        self.outbox.extend(messages.into_iter().map(keep));
    }

    /// Ends the pause of a destination, and makes its messages that failed due at `now`. Returns their number.
    pub(super) fn resume(&mut self, destination: DestinationId, now: DateTime<Utc>) -> u64 {
        self.destination_pauses.remove(&destination);
        let failed = |stored: &&mut StoredMessage| {
            stored.message.destination_id == destination && stored.next_at.is_some() && stored.failures > 0
        };
        let mut resumed = 0;
        for stored in self.outbox.iter_mut().filter(failed) {
            stored.failures = 0;
            stored.next_at = Some(now);
            resumed += 1;
        }
        resumed
    }
}

#[async_trait]
impl Outbox for MemoryOutbox {
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError> {
        let state = self.0.state();
        let due = state.outbox.iter().filter(|stored| stored.is_due(now)).map(|stored| stored.message.destination_id);
        let is_paused = |id: &DestinationId| state.destination_pauses.get(id).is_some_and(|until| *until > now);
        let mut found: Vec<DestinationId> = due.filter(|id| !except.contains(id) && !is_paused(id)).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    async fn pause(&self, destination: &Destination, until: DateTime<Utc>) -> Result<(), StoreError> {
        let mut state = self.0.state();
        let is_same = |stored: &Destination| stored.id == destination.id && stored.updated_at == destination.updated_at;
        if destination.id == Destination::OPERATORS || state.destinations.iter().any(is_same) {
            let paused = state.destination_pauses.entry(destination.id).or_insert(until);
            *paused = until.max(*paused);
        }
        Ok(())
    }

    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError> {
        let mut state = self.0.state();
        let mut due: Vec<&mut StoredMessage> = state
            .outbox
            .iter_mut()
            .filter(|stored| stored.message.destination_id == destination && stored.is_due(now))
            .collect();
        due.sort_by_key(|stored| (stored.next_at, stored.message.id));
        let mut taken: Vec<DueMessage> = Vec::new();
        let mut size = 0_usize;
        for stored in due.into_iter().take(usize::try_from(most).unwrap_or(usize::MAX)) {
            size = size.saturating_add(stored.message.payload.text().len());
            if !taken.is_empty() && size > bytes {
                break;
            }
            stored.next_at = Some(now + TimeDelta::from_std(lease).unwrap_or(TimeDelta::MAX));
            let StoredMessage { message, failures, created_at, .. } = stored;
            taken.push(DueMessage { message: message.clone(), failures: *failures, created_at: *created_at });
        }
        Ok(taken)
    }

    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError> {
        self.0.state().outbox.retain(|stored| !ids.contains(&stored.message.id));
        Ok(())
    }

    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, _reason: &str) -> Result<(), StoreError> {
        for stored in self.0.state().outbox.iter_mut().filter(|stored| ids.contains(&stored.message.id)) {
            stored.failures += 1;
            stored.next_at = next;
        }
        Ok(())
    }

    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError> {
        for stored in self.0.state().outbox.iter_mut().filter(|stored| ids.contains(&stored.message.id)) {
            stored.next_at = stored.next_at.map(|_| next);
        }
        Ok(())
    }

    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut state = self.0.state();
        let count = state.outbox.len();
        let is_there = state.destinations.iter().any(|stored| stored.id == destination);
        state.outbox.retain(|stored| {
            is_there
                || stored.message.destination_id != destination
                || stored.created_at >= before
                || stored.next_at.is_none()
        });
        Ok((count - state.outbox.len()) as u64)
    }

    async fn status(&self) -> Result<OutboxStatus, StoreError> {
        let state = self.0.state();
        let pending = || state.outbox.iter().filter(|stored| stored.next_at.is_some());
        Ok(OutboxStatus {
            pending: pending().count() as u64,
            dead: (state.outbox.len() - pending().count()) as u64,
            oldest: pending().map(|stored| stored.created_at).min(),
        })
    }

    async fn retry_dead_letters(&self, retry: &DeadLetterRetry, now: DateTime<Utc>) -> Result<Option<u64>, StoreError> {
        let mut state = self.0.state();
        let is_same = |stored: &Destination, seen: &Destination| stored.version() == seen.version();
        if retry.seen.as_ref().is_some_and(|seen| !state.destinations.iter().any(|stored| is_same(stored, seen))) {
            return Ok(None);
        }
        let mut retried = state.resume(retry.destination, now);
        let dead = state
            .outbox
            .iter_mut()
            .filter(|stored| stored.next_at.is_none() && stored.message.destination_id == retry.destination);
        for stored in dead {
            stored.failures = 0;
            stored.next_at = Some(now);
            retried += 1;
        }
        if retried > 0 {
            state.note(&retry.audited(retried), self.0.now());
        }
        Ok(Some(retried))
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut pruned = 0;
        self.0.state().outbox.retain(|stored| {
            let goes = stored.next_at.is_none() && stored.created_at < before && pruned < limit;
            pruned += u64::from(goes);
            !goes
        });
        Ok(pruned)
    }
}
