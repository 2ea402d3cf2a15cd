//! Limits hold at all times, over all replicas.

use std::collections::BTreeSet;

use crate::history::{Account, Call, Excess, History, Millis, Snapshot, Violation};

const CHECK: &str = "bank";

/// Checks that spent and held amounts never exceed a limit, and that they cover every answer and every call of the
/// provider. The trigger in the database has seen every committed state of a counter. What was drawn on a server that was
/// lost before its standby knew of it may be drawn again, and what moved between processes there stands twice until their
/// journals are folded.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let mut found: Vec<Violation> =
        snapshot.excesses.iter().filter_map(|excess| check_excess(excess, history)).collect();
    found.extend(history.accounts.iter().flat_map(|account| check_account(account, history, snapshot)));
    found
}

fn check_excess(excess: &Excess, history: &History) -> Option<Violation> {
    let Excess { scope, subject, counter, at } = excess;
    let account = history.accounts.iter().find(|account| (&account.scope, &account.subject) == (scope, subject));
    let limit = account.map_or(0, |account| account.limit_pico.saturating_add(account.excess_pico));
    let taken = counter.spent_pico.saturating_add(counter.allotted_pico);
    let at = Millis::try_from(at.saturating_sub(history.started_at)).unwrap_or_default();
    let permitted = history.drawn_in_lag(scope, subject).max(history.unfolded_at(scope, subject, at));
    if taken <= limit.saturating_add(permitted) {
        return None;
    }
    let text = format!("{scope} {subject} was above its limit at {at} ms: {counter:?}");
    Some(Violation { check: CHECK, text, evidence: Vec::new() })
}

fn check_account(account: &Account, history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let keys: BTreeSet<usize> = account.keys.iter().copied().collect();
    let name = (account.scope.clone(), account.subject.clone());
    let counter = snapshot.counters.get(&name).copied().unwrap_or_default();
    let answers: Vec<(&Call, i64)> = history
        .answers()
        .filter(|(call, ..)| keys.contains(&call.key))
        .map(|(call, _, cost_pico)| (call, cost_pico))
        .collect();
    let answered: i64 = answers.iter().map(|(_, cost_pico)| cost_pico).sum();
    let calls: i64 = keys.iter().filter_map(|key| snapshot.provider_calls.get(key)).sum();
    // A call above its hold that is interrupted is charged its bound, which is less than the provider bills.
    let billed = if account.excess_pico > 0 { 0 } else { calls.saturating_mul(history.settings.call_cost_pico) };
    let limit = account.limit_pico.saturating_add(account.excess_pico);
    let limit = limit.saturating_add(history.drawn_in_lag(&account.scope, &account.subject));
    let (spent, held) = (counter.spent_pico, counter.spent_pico.saturating_add(counter.allotted_pico));
    let rules = [
        (held > limit, format!("{held} picodollars are spent and held of a limit of {limit}")),
        (answered > limit, format!("answers cost {answered} picodollars of a limit of {limit}")),
        (billed > limit, format!("the provider billed {calls} calls, {billed} picodollars of a limit of {limit}")),
        (answered > spent, format!("answers cost {answered} picodollars, {spent} are counted")),
        (billed > spent, format!("the provider billed {calls} calls, {billed} picodollars, {spent} are counted")),
    ];
    let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
    broken
        .map(|(_, text)| {
            let text = format!("{} {}: {text}", account.scope, account.subject);
            let newest_first = answers.iter().rev().map(|(call, _)| *call);
            Violation::of_calls(CHECK, text, history, newest_first)
        })
        .collect()
}
