//! Refusals that need no second look at the store.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::calls::lock;
use super::sync::Mutex;
use crate::budget::{LimitExceeded, Payer};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::money::Usd;

/// For how long a refusal is repeated from memory. A caller that goes on asking at its limit costs the store one exact
/// answer in that time, and holds up nobody else who waits for a draw.
const REPEATED_FOR: Duration = Duration::from_millis(50);
/// Payers that are kept; beyond it all are forgotten.
const MAX_PAYERS: usize = 10_000;

type PayerKey = (WorkspaceId, ApiKeyId, Vec<GuardrailId>);

#[derive(Debug)]
struct Refusal {
    by: LimitExceeded,
    /// The change of the feed that the limits were read at.
    feed: u64,
    until: Duration,
}

/// Exact refusals of the last moments, by payer.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<PayerKey, Refusal>>);

impl Refusals {
    /// Keeps a refusal with nothing in flight: what is spent grows within a period, so it stays exact.
    pub(super) fn keep(&self, payer: &Payer, by: LimitExceeded, feed: u64, now: Duration) {
        if by.reserved > Usd::ZERO {
            return;
        }
        let mut known = lock(&self.0);
        if known.len() >= MAX_PAYERS {
            known.clear();
        }
        known.insert(key(payer), Refusal { by, feed, until: now.saturating_add(REPEATED_FOR) });
    }

    /// The refusal of a request, where what was spent a moment ago leaves no room for it.
    pub(super) fn find(
        &self,
        payer: &Payer,
        wanted: Usd,
        feed: u64,
        (now, at): (Duration, DateTime<Utc>),
    ) -> Option<LimitExceeded> {
        let known = lock(&self.0);
        let Refusal { by, feed: read_at, until } = known.get(&key(payer))?;
        let by = LimitExceeded { wanted, ..*by };
        let is_of_now = feed == *read_at && now < *until && by.resets_at.is_none_or(|end| at < end);
        let exceeds = by.spent.checked_add(wanted).is_none_or(|sum| sum > by.limit);
        (is_of_now && exceeds).then_some(by)
    }
}

fn key(payer: &Payer) -> PayerKey {
    (payer.workspace_id, payer.api_key, payer.guardrails.clone())
}
