//! Recent rejections that need no call to the store.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::calls::lock;
use super::sync::Mutex;
use crate::budget::{LimitExceeded, Payer};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::money::Usd;

/// How long a rejection is repeated from memory. A caller that retries at its limit costs the store one exact answer in
/// that time, and delays no other request.
const REJECTION_REUSE: Duration = Duration::from_millis(50);
/// The most kept payers; above it all are forgotten.
const MAX_PAYERS: usize = 10_000;

type PayerKey = (WorkspaceId, ApiKeyId, Vec<GuardrailId>);

#[derive(Debug)]
struct RecentRejection {
    by: LimitExceeded,
    /// The number of the feed at which the limits were read.
    feed: u64,
    until: Duration,
}

/// Recent exact rejections, by payer.
#[derive(Debug, Default)]
pub(super) struct RecentRejections(Mutex<HashMap<PayerKey, RecentRejection>>);

impl RecentRejections {
    /// Keeps a rejection without holds: the spent amount only grows within a period, so the rejection stays exact.
    pub(super) fn keep(&self, payer: &Payer, by: LimitExceeded, feed: u64, now: Duration) {
        if by.reserved > Usd::ZERO {
            return;
        }
        let mut known = lock(&self.0);
        if known.len() >= MAX_PAYERS {
            known.clear();
        }
        known.insert(key(payer), RecentRejection { by, feed, until: now.saturating_add(REJECTION_REUSE) });
    }

    /// Returns the rejection of a request if the recently spent amount leaves no room for it.
    pub(super) fn find(
        &self,
        payer: &Payer,
        wanted: Usd,
        feed: u64,
        (now, at): (Duration, DateTime<Utc>),
    ) -> Option<LimitExceeded> {
        let known = lock(&self.0);
        let RecentRejection { by, feed: read_at, until } = known.get(&key(payer))?;
        let by = LimitExceeded { wanted, ..*by };
        let is_of_now = feed == *read_at && now < *until && by.resets_at.is_none_or(|end| at < end);
        let exceeds = by.spent.checked_add(wanted).is_none_or(|sum| sum > by.limit);
        (is_of_now && exceeds).then_some(by)
    }
}

fn key(payer: &Payer) -> PayerKey {
    (payer.workspace_id, payer.api_key, payer.guardrails.clone())
}
