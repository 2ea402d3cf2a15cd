//! The decision of a draw: the allowances that a store grants.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::allowances::CounterId;
use super::{Account, BudgetScope, CounterLimit, DrawAhead, DrawAsk, DrawRequest, LimitExceeded, LimitStatus, admit};
use crate::money::Usd;

/// A counter as a store has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterBalance {
    /// The recorded amount.
    pub spent: Usd,
    /// The sum of all allowances.
    pub allotted: Usd,
    /// The allowance of the process that draws.
    pub own: Usd,
    /// True while a process lacks allowance of the counter: grants are exact.
    pub is_recalled: bool,
    /// True if another process has an allowance of it and has not answered the recall; see [`has_answered`].
    pub is_unanswered: bool,
    /// The limits of the counter's account and period.
    pub limits: Vec<CounterLimit>,
}

impl CounterBalance {
    /// Returns the least room of any limit; `None` without a limit.
    fn room(&self) -> Option<i128> {
        let rooms = self.limits.iter().map(|limit| {
            i128::from(limit.limit.amount.pico()) + i128::from(limit.base.pico())
                - i128::from(self.spent.pico())
                - i128::from(self.allotted.pico())
        });
        rooms.min()
    }

    /// Returns the limits for a request that may use `free` of the process's allowance.
    fn statuses(&self, counter: CounterId, free: Usd, at: DateTime<Utc>) -> impl Iterator<Item = LimitStatus> {
        let reserved = Usd::from_pico(self.allotted.pico().saturating_sub(free.pico()).max(0));
        self.limits.iter().map(move |limit| LimitStatus {
            scope: counter.account.scope(),
            guardrail_id: match counter.account {
                Account::Guardrail(id, _) => Some(id),
                Account::Workspace(_) | Account::Key(_) => None,
            },
            is_credit: limit.is_credit,
            limit: limit.limit.amount,
            reset: limit.limit.reset,
            spent: Usd::from_pico(self.spent.pico().saturating_sub(limit.base.pico())),
            reserved,
            resets_at: limit.limit.reset.map(|reset| reset.end_of(at)),
        })
    }
}

/// How long the answer of a process to a recall counts; it repeats it every second.
const ANSWER_LASTS: TimeDelta = TimeDelta::seconds(3);

/// Returns true if a process that was last seen at `seen_at` has recently answered a recall. Without a recall there is
/// no answer.
pub fn has_answered(recall_began_at: Option<DateTime<Utc>>, seen_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    recall_began_at.is_some_and(|began| seen_at >= began) && now - seen_at < ANSWER_LASTS
}

/// The result of [`decide_draw`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrawDecision {
    /// The granted amounts.
    pub grants: BTreeMap<CounterId, Usd>,
    /// For each ask in order: granted, or the limit that leaves no room.
    pub answers: Vec<Result<(), LimitExceeded>>,
    /// Counters to recall from other processes.
    pub recalls: Vec<CounterId>,
}

/// Decides a draw. Asks are served in order of arrival, each in all its counters or in none: first from what the process
/// has free, then by grants. A rejected ask does not block later ones. Then counters are filled ahead, with at most the
/// room divided by twice the number of live processes, and not those of a rejected ask or that another process lacks.
///
/// `balances` holds every counter of the asks and of `ahead`.
pub fn decide_draw(
    request: &DrawRequest,
    mut balances: BTreeMap<CounterId, CounterBalance>,
    live_processes: u64,
) -> DrawDecision {
    let mut decision = DrawDecision::default();
    let (mut free, mut rejected) = (request.free.clone(), HashSet::new());
    for ask in &request.asks {
        let of_process = |counter| free.get(counter).map_or(Usd::ZERO, |free| ask.amount.min(*free));
        let parts: Vec<_> = ask.counters.iter().map(|counter| (*counter, of_process(counter))).collect();
        let lacking = parts.iter().copied().filter(|(_, part)| *part < ask.amount);
        let answer = decide_ask(ask, lacking, &balances, &mut decision.recalls);
        if answer.is_ok() {
            for (counter, part) in parts {
                if let Some(free) = free.get_mut(&counter) {
                    *free = less(*free, part);
                }
                if part < ask.amount {
                    grant(&mut balances, &mut decision.grants, counter, less(ask.amount, part));
                }
            }
        } else {
            rejected.extend(ask.counters.iter().copied());
        }
        decision.answers.push(answer);
    }
    for DrawAhead { counter, amount } in &request.ahead {
        let Some(balance) = balances.get(counter) else { continue };
        if balance.is_recalled || rejected.contains(counter) {
            continue;
        }
        let share = balance.room().map_or(i128::MAX, |room| room / (2 * i128::from(live_processes.max(1))));
        let amount = i128::from(amount.pico()).min(share);
        if let Some(amount) = i64::try_from(amount).ok().filter(|amount| *amount > 0) {
            grant(&mut balances, &mut decision.grants, *counter, Usd::from_pico(amount));
        }
    }
    decision
}

/// `lacking` is the counters that lack a part of the amount, each with the part that the process has free.
fn decide_ask(
    ask: &DrawAsk,
    lacking: impl Iterator<Item = (CounterId, Usd)>,
    balances: &BTreeMap<CounterId, CounterBalance>,
    recalls: &mut Vec<CounterId>,
) -> Result<(), LimitExceeded> {
    let (mut statuses, mut is_uncertain) = (Vec::new(), false);
    for (counter, free) in lacking {
        let Some(balance) = balances.get(&counter) else { continue };
        let own: Vec<LimitStatus> = balance.statuses(counter, free, ask.at).collect();
        let kept_by_others = balance.allotted > balance.own;
        let waits = admit(&own, ask.amount).is_err_and(|exceeded| exceeded.waits_for_others());
        if waits && kept_by_others {
            is_uncertain |= balance.is_unanswered;
            if !recalls.contains(&counter) {
                recalls.push(counter);
            }
        }
        statuses.extend(own);
    }
    // Limits are reported in a fixed order: the workspace's, the key's, the guardrails'.
    statuses.sort_by_key(|status| match status.scope {
        BudgetScope::Workspace => 0,
        BudgetScope::Key => 1,
        BudgetScope::Guardrail => 2,
    });
    admit(&statuses, ask.amount).map_err(|exceeded| {
        // A shortfall that returned allowances cannot cover is certain.
        LimitExceeded { is_uncertain: is_uncertain && exceeded.waits_for_others(), ..exceeded }
    })
}

fn less(amount: Usd, part: Usd) -> Usd {
    Usd::from_pico(amount.pico().saturating_sub(part.pico()))
}

fn grant(
    balances: &mut BTreeMap<CounterId, CounterBalance>,
    grants: &mut BTreeMap<CounterId, Usd>,
    counter: CounterId,
    amount: Usd,
) {
    let add = |to: &mut Usd| *to = to.checked_add(amount).unwrap_or(Usd::from_pico(i64::MAX));
    if let Some(balance) = balances.get_mut(&counter) {
        add(&mut balance.allotted);
        add(&mut balance.own);
    }
    add(grants.entry(counter).or_default());
}
