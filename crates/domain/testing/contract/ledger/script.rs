//! Random scripts, compared with a simple model: a list of holds and charges, and sums over them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::Stores;
use super::super::samples::{
    add_guardrail, add_key, audit, guardrail, guardrail_id, inference_key, key_id, update_guardrail, workspace_id,
};
use super::fixtures::{
    adds_up, attempt, id, insert_fixtures, limit_key, limit_statuses, limit_workspace, payer, payer_under, record,
    reserve, settle, usd, utc,
};
use crate::api_key::ApiKey;
use crate::budget::{
    Account, BudgetScope, LimitExceeded, LimitStatus, Payer, ResetInterval, SpendLimit, WorkspaceBudgets,
};
use crate::guardrail::Guardrail;
use crate::money::Usd;
use crate::system::Clock;
use crate::testing::{SeededDraws, add_credit, clear_credit};
use crate::usage::{UsageOutcome, UsageRecord};

/// A step of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerStep {
    /// A request holds an amount: id, payer and amount.
    Reserve(u64, usize, i64),
    /// A hold is increased.
    Extend(u64, i64),
    /// A request is charged: id, payer and cost.
    Settle(u64, usize, i64),
    /// A hold is released.
    Release(u64),
    /// The process died: the request is charged its upper bound.
    Abandon(u64),
    /// Seconds pass.
    Wait(i64),
    /// A key's limit changes.
    LimitKey(usize, Option<SpendLimit>),
    /// The first workspace's budgets change.
    LimitWorkspace(WorkspaceBudgets),
    /// The budget of a guardrail changes.
    LimitGuardrail(usize, Option<SpendLimit>),
    /// The first workspace gets credit.
    AddCredit(i64),
    /// The first workspace becomes unlimited.
    ClearCredit,
    /// Retention removes records older than a number of days.
    Prune(u64),
}

const IDS: u64 = 24;
const PAYERS: usize = 4;
const HOUR: i64 = 3_600;

impl LedgerStep {
    /// Returns the step of random numbers. Holds and charges are the most frequent.
    pub fn drawn(kind: u8, what: u8, amount: u8) -> Self {
        let (id, payer) = (u64::from(what) % IDS + 1, usize::from(what / 29) % PAYERS);
        let pico = i64::from(amount);
        let reset = match what % 4 {
            0 => None,
            place => Some(ResetInterval::ALL[usize::from(place) - 1]),
        };
        let limit = (amount >= 40).then_some(SpendLimit { amount: usd(pico * 2), reset });
        let budget = |bit: u8| (what & bit != 0).then_some(usd(pico * 3));
        match kind % 32 {
            0..=9 => Self::Reserve(id, payer, pico / 2),
            10..=12 => Self::Extend(id, pico / 4),
            13..=18 => Self::Settle(id, payer, pico / 3),
            19..=20 => Self::Release(id),
            21..=22 => Self::Abandon(id),
            23..=24 => Self::Wait([1, 60, 121, HOUR, 7 * HOUR, 24 * HOUR, 5 * 24 * HOUR][usize::from(what) % 7]),
            25..=26 => Self::LimitKey(payer, limit),
            27 => Self::LimitWorkspace(WorkspaceBudgets {
                daily: budget(1),
                weekly: budget(2),
                monthly: budget(4),
                lifetime: budget(8),
            }),
            28 => Self::LimitGuardrail(usize::from(what % 2), limit),
            29 => Self::AddCredit(pico + 1),
            30 if amount < 200 => Self::ClearCredit,
            _ => Self::Prune(u64::from(what % 40)),
        }
    }

    /// Returns random steps by a seed.
    pub fn script(seed: u64, length: usize) -> Vec<Self> {
        let mut draws = SeededDraws::new(seed);
        let step = |[kind, what, amount, ..]: [u8; 8]| Self::drawn(kind, what, amount);
        (0..length).map(|_| step(draws.next().to_le_bytes())).collect()
    }
}

/// Runs a script on empty stores.
///
/// # Panics
/// The ledger differs from the model.
pub async fn ledger_script(stores: &Stores, steps: &[LedgerStep]) {
    let mut model = Model::insert_fixtures(stores).await;
    for (number, step) in steps.iter().enumerate() {
        model.step(stores, *step).await;
        for payer in &model.payers {
            let (found, expected) =
                (limit_statuses(stores, payer).await, model.limit_statuses(payer, stores.clock.now()));
            assert_eq!(found, expected, "after step {number}, {step:?}, of {steps:?}");
            let of_workspace = stores.limits.workspace_limit_statuses(payer.workspace_id).await.unwrap();
            let expected: Vec<_> =
                expected.into_iter().filter(|status| status.scope == BudgetScope::Workspace).collect();
            assert_eq!(of_workspace, expected, "after step {number}, {step:?}, of {steps:?}");
        }
        if number % 16 == 0 || number + 1 == steps.len() {
            adds_up(stores, &format!("step {number}, {step:?}, of {steps:?}")).await;
        }
    }
}

struct Model {
    payers: Vec<Payer>,
    open: Vec<Open>,
    charged: Vec<Charged>,
    keys: [Option<SpendLimit>; PAYERS],
    guardrails: [Option<SpendLimit>; 2],
    budgets: WorkspaceBudgets,
    /// The granted credit, and the spend at its beginning.
    credit: Option<(i64, i64)>,
}

struct Open {
    id: u64,
    payer: Payer,
    at: DateTime<Utc>,
    amount: i64,
}

struct Charged {
    /// `None` once retention has removed the record.
    id: Option<u64>,
    payer: Payer,
    at: DateTime<Utc>,
    cost: i64,
    abandoned: bool,
}

fn counts(
    payer: &Payer,
    at: DateTime<Utc>,
    account: Account,
    reset: Option<ResetInterval>,
    now: DateTime<Utc>,
) -> bool {
    payer.accounts().any(|own| own == account) && reset.is_none_or(|reset| reset.start_of(at) == reset.start_of(now))
}

impl Model {
    async fn insert_fixtures(stores: &Stores) -> Self {
        insert_fixtures(stores).await;
        // Near the end of a week and of a month.
        stores.clock.set(utc("2026-07-30T18:00:00Z"));
        add_key(stores, &ApiKey { limit: None, ..inference_key(3, 1) }).await;
        for number in [1, 2] {
            add_guardrail(stores, &guardrail(number, 1)).await;
        }
        let payers =
            vec![payer(1), payer_under(1, &[1]), Payer { api_key: key_id(3), ..payer_under(1, &[2, 1]) }, payer(2)];
        Self {
            payers,
            open: Vec::new(),
            charged: Vec::new(),
            keys: [None; PAYERS],
            guardrails: [None; 2],
            budgets: WorkspaceBudgets::default(),
            credit: None,
        }
    }

    fn spent(&self, account: Account, reset: Option<ResetInterval>, now: DateTime<Utc>) -> i64 {
        // Removed records count in the total only.
        let known = self.charged.iter().filter(|one| one.id.is_some() || reset.is_none());
        let counting = known.filter(|one| counts(&one.payer, one.at, account, reset, now));
        counting.map(|one| one.cost).sum()
    }

    fn reserved(&self, account: Account, reset: Option<ResetInterval>, now: DateTime<Utc>) -> i64 {
        let counting = self.open.iter().filter(|one| counts(&one.payer, one.at, account, reset, now));
        counting.map(|one| one.amount).sum()
    }

    fn limit_statuses(&self, payer: &Payer, now: DateTime<Utc>) -> Vec<LimitStatus> {
        let of = |account: Account, limit: SpendLimit| LimitStatus {
            scope: account.scope(),
            guardrail_id: if let Account::Guardrail(id, _) = account { Some(id) } else { None },
            is_credit: false,
            limit: limit.amount,
            reset: limit.reset,
            spent: usd(self.spent(account, limit.reset, now)),
            reserved: usd(self.reserved(account, limit.reset, now)),
            resets_at: limit.reset.map(|reset| reset.end_of(now)),
        };
        let workspace = Account::Workspace(payer.workspace_id);
        let mut limits = Vec::new();
        if payer.workspace_id == workspace_id(1) {
            limits.extend(self.credit.map(|(granted, base)| {
                let whole = of(workspace, SpendLimit { amount: usd(granted), reset: None });
                LimitStatus { is_credit: true, spent: usd(whole.spent.pico() - base), ..whole }
            }));
            limits.extend(self.budgets.limits().map(|limit| of(workspace, limit)));
        }
        let key = self.payers.iter().position(|other| other.api_key == payer.api_key).unwrap();
        limits.extend(self.keys[key].map(|limit| of(Account::Key(payer.api_key), limit)));
        for id in &payer.guardrails {
            let place = usize::from(*id == guardrail_id(2));
            limits.extend(self.guardrails[place].map(|limit| of(Account::Guardrail(*id, payer.api_key), limit)));
        }
        limits
    }

    /// Asserts that a hold is rejected exactly if a limit has no room, and by such a limit. Zero is always granted.
    fn judge(&self, payer: &Payer, at: DateTime<Utc>, pico: i64, exceeded_limit: Option<LimitExceeded>) {
        let limit_statuses = self.limit_statuses(payer, at);
        let full =
            |limit: &&LimitStatus| pico > 0 && limit.spent.pico() + limit.reserved.pico() + pico > limit.limit.pico();
        let refusing: Vec<&LimitStatus> = limit_statuses.iter().filter(full).collect();
        let Some(exceeded_limit) = exceeded_limit else {
            assert!(refusing.is_empty(), "{pico} were admitted over {refusing:?}");
            return;
        };
        let LimitExceeded { scope, guardrail_id, is_credit, limit, reset, spent, reserved, wanted, resets_at, .. } =
            exceeded_limit;
        let named = LimitStatus { scope, guardrail_id, is_credit, limit, reset, spent, reserved, resets_at };
        assert_eq!(wanted, usd(pico));
        assert!(refusing.contains(&&named), "{named:?} is none of {refusing:?}");
        assert_eq!(guardrail_id.is_some(), scope == BudgetScope::Guardrail);
    }

    async fn step(&mut self, stores: &Stores, step: LedgerStep) {
        let now = stores.clock.now();
        match step {
            LedgerStep::Reserve(number, who, pico) => self.reserve(stores, number, who, pico).await,
            LedgerStep::Extend(number, more) => self.extend(stores, number, more).await,
            LedgerStep::Settle(number, who, pico) => self.settle(stores, number, who, pico).await,
            LedgerStep::Release(number) => {
                stores.ledger.release(&id(number)).await.unwrap();
                self.open.retain(|open| open.id != number);
            }
            LedgerStep::Abandon(number) => self.abandon(stores, number).await,
            LedgerStep::Wait(seconds) => stores.clock.advance(Duration::from_secs(seconds.unsigned_abs())),
            LedgerStep::LimitKey(who, limit) => {
                // Two of the payers have one key.
                let place = self.payers.iter().position(|other| other.api_key == self.payers[who].api_key).unwrap();
                let number = [1, 1, 3, 2][place];
                limit_key(stores, number, limit.map(|limit| (limit.amount.pico(), limit.reset))).await;
                self.keys[place] = limit;
            }
            LedgerStep::LimitWorkspace(budgets) => {
                limit_workspace(stores, 1, budgets).await;
                self.budgets = budgets;
            }
            LedgerStep::LimitGuardrail(place, budget) => {
                let number = [1, 2][place];
                let found = stores.guardrails.find(guardrail_id(number)).await.unwrap().unwrap();
                let changed = Guardrail { budget, version: found.version + 1, ..found };
                assert!(update_guardrail(&*stores.guardrails, &changed, [false; 2], &audit()).await.unwrap());
                self.guardrails[place] = budget;
            }
            LedgerStep::AddCredit(pico) => {
                let total = self.spent(Account::Workspace(workspace_id(1)), None, now);
                let (granted, base) = self.credit.unwrap_or((0, total));
                let left = add_credit(&*stores.workspaces, workspace_id(1), usd(pico), &audit()).await.unwrap();
                assert_eq!(left.map(Usd::pico), Some(granted + pico - (total - base)));
                self.credit = Some((granted + pico, base));
            }
            LedgerStep::ClearCredit => {
                assert!(clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap());
                self.credit = None;
            }
            LedgerStep::Prune(days) => {
                let pruned = stores.maintenance.prune(Duration::from_hours(24 * days), u64::MAX).await.unwrap();
                // A request that began an hour ago may still increase its hold.
                let needed = now - TimeDelta::hours(1);
                let running = ResetInterval::ALL.map(|interval| interval.start_of(needed));
                let old = now - TimeDelta::days(i64::try_from(days).unwrap());
                let before = running.into_iter().fold(old, DateTime::min);
                let going = self.charged.iter_mut().filter(|one| one.id.is_some() && one.at < before);
                assert_eq!(pruned.unreadable, 0);
                assert_eq!(pruned.removed, going.map(|one| one.id = None).map(|()| 1).sum::<u64>());
            }
        }
    }

    async fn reserve(&mut self, stores: &Stores, number: u64, who: usize, pico: i64) {
        let payer = self.payers[who].clone();
        let made = reserve(stores, number, &payer, pico).await;
        if let Some(open) = self.open.iter().find(|open| open.id == number) {
            let made = made.expect("what is reserved is returned");
            assert_eq!((made.at, &made.payer, made.amount), (open.at, &open.payer, usd(open.amount)));
            return;
        }
        let at = stores.clock.now();
        self.judge(&payer, at, pico, made.as_ref().err().copied());
        if let Ok(made) = made {
            assert_eq!((made.at, &made.payer, made.amount), (at, &payer, usd(pico)));
            self.open.push(Open { id: number, payer, at, amount: pico });
        }
    }

    async fn extend(&mut self, stores: &Stores, number: u64, more: i64) {
        let extended = stores.ledger.increase(&id(number), usd(more), &[attempt(more)]).await;
        let Some(place) = self.open.iter().position(|open| open.id == number) else {
            assert!(extended.is_err(), "there is nothing to extend");
            return;
        };
        let exceeded_limit = extended.expect("the ledger answers").err();
        let (payer, at) = (self.open[place].payer.clone(), self.open[place].at);
        self.judge(&payer, at, more, exceeded_limit);
        if exceeded_limit.is_none() {
            self.open[place].amount += more;
        }
    }

    async fn settle(&mut self, stores: &Stores, number: u64, who: usize, pico: i64) {
        let open = self.open.iter().position(|open| open.id == number).map(|place| self.open.remove(place));
        let there = self.charged.iter().position(|one| one.id == Some(number));
        let (payer, at) = match (&open, there) {
            (Some(open), _) => (open.payer.clone(), open.at),
            (None, Some(place)) => (self.charged[place].payer.clone(), self.charged[place].at),
            (None, None) => (self.payers[who].clone(), stores.clock.now()),
        };
        settle(stores, record(number, payer.clone(), pico, at)).await;
        match there {
            Some(place) if !self.charged[place].abandoned => return,
            Some(place) => drop(self.charged.remove(place)),
            None => {}
        }
        self.charged.push(Charged { id: Some(number), payer, at, cost: pico, abandoned: false });
    }

    async fn abandon(&mut self, stores: &Stores, number: u64) {
        let Some(place) = self.open.iter().position(|open| open.id == number) else { return };
        let Open { id, payer, at, amount } = self.open.remove(place);
        let bound = record(id, payer.clone(), amount, at);
        settle(stores, UsageRecord { outcome: UsageOutcome::Abandoned, ..bound }).await;
        if self.charged.iter().all(|one| one.id != Some(id)) {
            self.charged.push(Charged { id: Some(id), payer, at, cost: amount, abandoned: true });
        }
    }
}
