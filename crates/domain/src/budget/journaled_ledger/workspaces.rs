//! The allowances of every workspace, and the limits that the process knows.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::calls::lock;
use super::sync::{AtomicBool, AtomicU64, Mutex, RwLock};
use crate::budget::allowances::{AllowanceSettings, CounterId, WorkspaceAllowances};
use crate::budget::{Account, CounterLimit, CounterLimits, Payer};
use crate::ids::{ApiKeyId, GuardrailId, WorkspaceId};
use crate::money::Usd;

/// Payers of one workspace whose limits are kept; beyond it all are read anew.
const MAX_PAYERS: usize = 100_000;

/// The limits of a payer as they were at a change of the feed.
#[derive(Debug, Clone)]
struct KnownLimits {
    limits: Arc<[CounterLimits]>,
    feed: u64,
    read_at: Duration,
}

type PayerKey = (ApiKeyId, Vec<GuardrailId>);

/// The money of one workspace.
#[derive(Debug, Default)]
pub(super) struct WorkspaceMoney {
    pub(super) allowances: WorkspaceAllowances,
    limits: HashMap<PayerKey, KnownLimits>,
}

/// The money of all workspaces.
#[derive(Debug)]
pub(super) struct Workspaces {
    all: RwLock<HashMap<WorkspaceId, Arc<Mutex<WorkspaceMoney>>>>,
    settings: LedgerSettings,
    /// The newest change of the feed that the process knows of.
    feed: AtomicU64,
    /// True where the last number that was followed was lower than that.
    was_behind: AtomicBool,
}

/// The settings of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Those of its allowances.
    pub allowances: AllowanceSettings,
    /// For how long known limits are used after any change of the feed.
    pub limits_recheck: Duration,
    /// The longest time between two calls by which the store sees that the process lives.
    pub heartbeat: Duration,
}

impl Default for LedgerSettings {
    /// Limits are read again after half of the second in which a change of them is in force.
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

    pub(super) fn get(&self, id: WorkspaceId) -> Arc<Mutex<WorkspaceMoney>> {
        let known = self.all.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        known.unwrap_or_else(|| {
            let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
            let money = || WorkspaceMoney {
                allowances: WorkspaceAllowances::new(self.settings.allowances),
                limits: HashMap::new(),
            };
            Arc::clone(all.entry(id).or_insert_with(|| Arc::new(Mutex::new(money()))))
        })
    }

    pub(super) fn all(&self) -> Vec<(WorkspaceId, Arc<Mutex<WorkspaceMoney>>)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(id, money)| (*id, Arc::clone(money))).collect()
    }

    /// The limits of a payer, where they are known and new enough.
    pub(super) fn limits(&self, payer: &Payer, now: Duration) -> Option<Arc<[CounterLimits]>> {
        let money = self.get(payer.workspace_id);
        let money = lock(&money);
        let known = money.limits.get(&key(payer))?;
        let is_new = known.feed >= self.feed.load(Ordering::Acquire)
            || now.saturating_sub(known.read_at) < self.settings.limits_recheck;
        is_new.then(|| Arc::clone(&known.limits))
    }

    /// The limits of a payer as they were when they were last read.
    pub(super) fn last_limits(&self, payer: &Payer) -> Option<Arc<[CounterLimits]>> {
        let money = self.get(payer.workspace_id);
        let money = lock(&money);
        money.limits.get(&key(payer)).map(|known| Arc::clone(&known.limits))
    }

    /// Keeps limits that were read. What is free of a limit that was lowered or removed goes back.
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
        let known = KnownLimits { limits: Arc::clone(&limits), feed, read_at: now };
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

    /// The newest change of the feed that the process knows of.
    pub(super) fn feed(&self) -> u64 {
        self.feed.load(Ordering::Acquire)
    }

    /// The feed is at a number, as one caller after the other reads it. One that fell is that of a store that was restored from a backup: nothing that was read
    /// before says how limits are now.
    pub(super) fn follow(&self, feed: u64) {
        let is_behind = feed < self.feed.fetch_max(feed, Ordering::AcqRel);
        // Once may be a request that read a newer number at the same time.
        if !is_behind || !self.was_behind.swap(true, Ordering::AcqRel) {
            self.was_behind.store(is_behind, Ordering::Release);
            return;
        }
        self.was_behind.store(false, Ordering::Release);
        self.feed.store(feed, Ordering::Release);
        tracing::warn!(feed, "the store is older than it was: limits are read anew");
        for (_, money) in self.all() {
            let mut money = lock(&money);
            for known in money.limits.values_mut() {
                (known.feed, known.read_at) = (0, Duration::ZERO);
            }
            money.allowances.forget_changes();
        }
    }

    /// The feed has reached a number.
    pub(super) fn changed(&self, feed: u64) {
        self.feed.fetch_max(feed, Ordering::AcqRel);
    }

    /// A process lacks allowance of a counter. Returns true where this one has some.
    pub(super) fn recalled(&self, counter: CounterId, until: Duration) -> bool {
        let recall = |money: &Mutex<WorkspaceMoney>| {
            let mut money = lock(money);
            let has_some = money.allowances.status(counter).amount > Usd::ZERO;
            if has_some {
                money.allowances.recalled(counter, until);
            }
            has_some
        };
        match counter.account {
            Account::Workspace(id) => recall(&self.get(id)),
            // The workspace of a key is not in the name of its counter.
            Account::Key(_) | Account::Guardrail(..) => {
                self.all().iter().fold(false, |any, (_, money)| recall(money) || any)
            }
        }
    }

    /// The settings of the ledger.
    pub(super) fn settings(&self) -> LedgerSettings {
        self.settings
    }
}

fn key(payer: &Payer) -> PayerKey {
    (payer.api_key, payer.guardrails.clone())
}

/// True where any limit is gone or leaves less than before.
fn is_lower(before: &[CounterLimit], after: &[CounterLimit]) -> bool {
    before.iter().any(|old| {
        let same = |new: &&CounterLimit| new.limit.reset == old.limit.reset && new.is_credit == old.is_credit;
        let sum = |limit: &CounterLimit| i128::from(limit.limit.amount.pico()) + i128::from(limit.base.pico());
        after.iter().find(same).is_none_or(|new| sum(new) < sum(old))
    })
}
