//! The allowances of all workspaces, and the cached limits of payers.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::calls::lock;
use super::sync::{AtomicBool, AtomicU64, Mutex, RwLock};
use crate::budget::allowances::{AllowanceSettings, CounterId, WorkspaceAllowances};
use crate::budget::{Account, CounterLimit, CounterLimits, Payer};
use crate::ids::{ApiKeyId, GuardrailId, IdMap, WorkspaceId};
use crate::money::Usd;

/// The most payers of a workspace with cached limits; above it all are read again.
const MAX_PAYERS: usize = 100_000;

/// The limits of a payer at a number of the feed.
#[derive(Debug, Clone)]
struct KnownLimits {
    limits: Arc<[CounterLimits]>,
    feed: u64,
    read_at: Duration,
    /// True if the last attempt to read them again timed out.
    has_timed_out: bool,
}

type PayerKey = (ApiKeyId, Vec<GuardrailId>);

/// The allowances and cached limits of one workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceState {
    pub(super) allowances: WorkspaceAllowances,
    limits: HashMap<PayerKey, KnownLimits>,
}

/// The allowances and cached limits of all workspaces.
#[derive(Debug)]
pub(super) struct Workspaces {
    all: RwLock<IdMap<WorkspaceId, Arc<Mutex<WorkspaceState>>>>,
    settings: LedgerSettings,
    /// The newest known change of the feed.
    feed: AtomicU64,
    /// True if the last followed number was lower.
    was_behind: AtomicBool,
}

/// The settings of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// The settings of allowances.
    pub allowances: AllowanceSettings,
    /// How long cached limits are used after a change of the feed.
    pub limits_recheck: Duration,
    /// The longest time between two calls that show the store that the process lives.
    pub heartbeat: Duration,
}

impl Default for LedgerSettings {
    /// Returns settings that read limits again after half of the second within which a change must apply.
    fn default() -> Self {
        Self {
            allowances: AllowanceSettings::default(),
            limits_recheck: Duration::from_millis(500),
            heartbeat: Duration::from_secs(30),
        }
    }
}

impl Workspaces {
    pub(super) fn new(settings: LedgerSettings) -> Self {
        Self { all: RwLock::default(), settings, feed: AtomicU64::new(0), was_behind: AtomicBool::new(false) }
    }

    pub(super) fn get(&self, id: WorkspaceId) -> Arc<Mutex<WorkspaceState>> {
        let known = self.all.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        known.unwrap_or_else(|| {
            let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
            let money = || WorkspaceState {
                allowances: WorkspaceAllowances::new(self.settings.allowances),
                limits: HashMap::new(),
            };
            Arc::clone(all.entry(id).or_insert_with(|| Arc::new(Mutex::new(money()))))
        })
    }

    pub(super) fn all(&self) -> Vec<(WorkspaceId, Arc<Mutex<WorkspaceState>>)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(id, money)| (*id, Arc::clone(money))).collect()
    }

    /// Returns the cached limits of a payer, if they are new enough.
    pub(super) fn limits(&self, payer: &Payer, now: Duration) -> Option<Arc<[CounterLimits]>> {
        let money = self.get(payer.workspace_id);
        let money = lock(&money);
        let known = money.limits.get(&key(payer))?;
        let is_new = known.feed >= self.feed.load(Ordering::Acquire)
            || now.saturating_sub(known.read_at) < self.settings.limits_recheck;
        is_new.then(|| Arc::clone(&known.limits))
    }

    /// Returns the last read limits of a payer.
    pub(super) fn last_limits(&self, payer: &Payer) -> Option<Arc<[CounterLimits]>> {
        let money = self.get(payer.workspace_id);
        let money = lock(&money);
        money.limits.get(&key(payer)).map(|known| Arc::clone(&known.limits))
    }

    /// Returns true if the next read of a payer's limits may time out, because the one before did not.
    pub(super) fn may_time_out(&self, payer: &Payer) -> bool {
        let money = self.get(payer.workspace_id);
        let money = lock(&money);
        money.limits.get(&key(payer)).is_some_and(|known| !known.has_timed_out)
    }

    /// Records that a read of a payer's limits timed out.
    pub(super) fn note_timeout(&self, payer: &Payer) {
        let money = self.get(payer.workspace_id);
        if let Some(known) = lock(&money).limits.get_mut(&key(payer)) {
            known.has_timed_out = true;
        }
    }

    /// Caches limits. Free amounts of a lowered or removed limit are due for return.
    pub(super) fn keep_limits(
        &self,
        payer: &Payer,
        limits: Vec<CounterLimits>,
        feed: u64,
        now: Duration,
    ) -> Arc<[CounterLimits]> {
        let money = self.get(payer.workspace_id);
        let mut money = lock(&money);
        let limits: Arc<[CounterLimits]> = limits.into();
        let known = KnownLimits { limits: Arc::clone(&limits), feed, read_at: now, has_timed_out: false };
        if money.limits.len() >= MAX_PAYERS {
            money.limits.clear();
        }
        if let Some(before) = money.limits.insert(key(payer), known) {
            for account in before.limits.iter() {
                let after = limits.iter().find(|other| other.account == account.account);
                if after.is_none_or(|after| is_lower(&account.limits, &after.limits)) {
                    money.allowances.limits_changed(account.account, feed);
                }
            }
        }
        limits
    }

    /// Returns the newest known change of the feed.
    pub(super) fn feed(&self) -> u64 {
        self.feed.load(Ordering::Acquire)
    }

    /// Follows the number of the feed. A lower number means that the store was restored from a backup: all cached
    /// limits are then invalid.
    pub(super) fn follow(&self, feed: u64) {
        let is_behind = feed < self.feed.fetch_max(feed, Ordering::AcqRel);
        // A single lower number may be due to a concurrent request that read a newer one.
        if !is_behind || !self.was_behind.swap(true, Ordering::AcqRel) {
            self.was_behind.store(is_behind, Ordering::Release);
            return;
        }
        self.was_behind.store(false, Ordering::Release);
        self.feed.store(feed, Ordering::Release);
        tracing::warn!(feed, "store was replaced by an older version; reloading limits");
        for (_, money) in self.all() {
            let mut money = lock(&money);
            for known in money.limits.values_mut() {
                (known.feed, known.read_at) = (0, Duration::ZERO);
            }
            money.allowances.forget_changes();
        }
    }

    /// Raises the number of the feed.
    pub(super) fn changed(&self, feed: u64) {
        self.feed.fetch_max(feed, Ordering::AcqRel);
    }

    /// Records a recall of a counter. Returns true if this process has an allowance of it.
    pub(super) fn recalled(&self, counter: CounterId, until: Duration) -> bool {
        let recall = |money: &Mutex<WorkspaceState>| {
            let mut money = lock(money);
            let has_some = money.allowances.status(counter).amount > Usd::ZERO;
            if has_some {
                money.allowances.recalled(counter, until);
            }
            has_some
        };
        match counter.account {
            Account::Workspace(id) => recall(&self.get(id)),
            // The counter of a key does not name its workspace.
            Account::Key(_) | Account::Guardrail(..) => {
                self.all().iter().fold(false, |any, (_, money)| recall(money) || any)
            }
        }
    }

    /// Returns the settings of the ledger.
    pub(super) fn settings(&self) -> LedgerSettings {
        self.settings
    }
}

fn key(payer: &Payer) -> PayerKey {
    (payer.api_key, payer.guardrails.clone())
}

/// Returns true if any limit is removed or lower than before.
fn is_lower(before: &[CounterLimit], after: &[CounterLimit]) -> bool {
    before.iter().any(|old| {
        let same = |new: &&CounterLimit| new.limit.reset == old.limit.reset && new.is_credit == old.is_credit;
        let sum = |limit: &CounterLimit| i128::from(limit.limit.amount.pico()) + i128::from(limit.base.pico());
        after.iter().find(same).is_none_or(|new| sum(new) < sum(old))
    })
}
