//! The outbox in memory.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};

use super::MemoryStore;
use super::memory_store::State;
use crate::error::StoreError;
use crate::ids::{DestinationId, OutboxId};
use crate::observability::{DueMessage, Outbox, OutboxStanding, Revival};
use crate::usage::OutboxMessage;

/// A message with where it stands.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) message: OutboxMessage,
    failures: u32,
    created_at: DateTime<Utc>,
    /// `None` for a dead letter.
    next_at: Option<DateTime<Utc>>,
}

impl Kept {
    fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.next_at.is_some_and(|next| next <= now)
    }
}

impl State {
    /// Puts messages into the outbox; part of the transaction that settles a request.
    pub(super) fn enqueue(&mut self, messages: Vec<OutboxMessage>, at: DateTime<Utc>) {
        let keep = |message| Kept { message, failures: 0, created_at: at, next_at: Some(at) };
        self.outbox.extend(messages.into_iter().map(keep));
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn due(&self, now: DateTime<Utc>, except: &[DestinationId]) -> Result<Vec<DestinationId>, StoreError> {
        let state = self.state();
        let due = state.outbox.iter().filter(|kept| kept.is_due(now)).map(|kept| kept.message.destination_id);
        let mut found: Vec<DestinationId> = due.filter(|id| !except.contains(id)).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    async fn take(
        &self,
        destination: DestinationId,
        now: DateTime<Utc>,
        lease: Duration,
        most: u64,
        bytes: usize,
    ) -> Result<Vec<DueMessage>, StoreError> {
        let mut state = self.state();
        let mut due: Vec<&mut Kept> = state
            .outbox
            .iter_mut()
            .filter(|kept| kept.message.destination_id == destination && kept.is_due(now))
            .collect();
        due.sort_by_key(|kept| (kept.next_at, kept.message.id));
        let mut taken: Vec<DueMessage> = Vec::new();
        let mut size = 0_usize;
        for kept in due.into_iter().take(usize::try_from(most).unwrap_or(usize::MAX)) {
            size = size.saturating_add(kept.message.payload.text().len());
            if !taken.is_empty() && size > bytes {
                break;
            }
            kept.next_at = Some(now + TimeDelta::from_std(lease).unwrap_or(TimeDelta::MAX));
            let Kept { message, failures, created_at, .. } = kept;
            taken.push(DueMessage { message: message.clone(), failures: *failures, created_at: *created_at });
        }
        Ok(taken)
    }

    async fn delivered(&self, ids: &[OutboxId]) -> Result<(), StoreError> {
        self.state().outbox.retain(|kept| !ids.contains(&kept.message.id));
        Ok(())
    }

    async fn failed(&self, ids: &[OutboxId], next: Option<DateTime<Utc>>, _reason: &str) -> Result<(), StoreError> {
        for kept in self.state().outbox.iter_mut().filter(|kept| ids.contains(&kept.message.id)) {
            kept.failures += 1;
            kept.next_at = next;
        }
        Ok(())
    }

    async fn postponed(&self, ids: &[OutboxId], next: DateTime<Utc>) -> Result<(), StoreError> {
        for kept in self.state().outbox.iter_mut().filter(|kept| ids.contains(&kept.message.id)) {
            kept.next_at = kept.next_at.map(|_| next);
        }
        Ok(())
    }

    async fn discard(&self, destination: DestinationId, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut state = self.state();
        let count = state.outbox.len();
        let is_there = state.destinations.iter().any(|stored| stored.id == destination);
        state.outbox.retain(|kept| {
            is_there
                || kept.message.destination_id != destination
                || kept.created_at >= before
                || kept.next_at.is_none()
        });
        Ok((count - state.outbox.len()) as u64)
    }

    async fn standing(&self) -> Result<OutboxStanding, StoreError> {
        let state = self.state();
        let pending = || state.outbox.iter().filter(|kept| kept.next_at.is_some());
        Ok(OutboxStanding {
            pending: pending().count() as u64,
            dead: (state.outbox.len() - pending().count()) as u64,
            oldest: pending().map(|kept| kept.created_at).min(),
        })
    }

    async fn revive(&self, revival: &Revival, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut state = self.state();
        let dead = state.outbox.iter_mut().filter(|kept| {
            kept.next_at.is_none() && revival.destination.is_none_or(|wanted| kept.message.destination_id == wanted)
        });
        let mut revived = 0;
        for kept in dead {
            kept.failures = 0;
            kept.next_at = Some(now);
            revived += 1;
        }
        if revived > 0 {
            state.note(&revival.audited(revived), self.now());
        }
        Ok(revived)
    }

    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError> {
        let mut pruned = 0;
        self.state().outbox.retain(|kept| {
            let goes = kept.next_at.is_none() && kept.created_at < before && pruned < limit;
            pruned += u64::from(goes);
            !goes
        });
        Ok(pruned)
    }
}
