//! Limits hold at all times, over all replicas.

use std::collections::BTreeSet;

use crate::history::{Account, Call, History, Snapshot, Violation};

const CHECK: &str = "bank";

/// Checks that spent and held amounts never exceed a limit, and that they cover every answer and every call of the
/// provider. The trigger in the database has seen every committed state of a counter.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let mut found: Vec<Violation> = snapshot
        .excesses
        .iter()
        .map(|excess| {
            let text = format!(
                "{} {} was above its limit at {}: {:?}",
                excess.scope, excess.subject, excess.at, excess.counter
            );
            Violation { check: CHECK, text, evidence: Vec::new() }
        })
        .collect();
    found.extend(history.accounts.iter().flat_map(|account| check_account(account, history, snapshot)));
    found
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
    let billed = calls.saturating_mul(history.settings.call_cost_pico);
    let limit = account.limit_pico;
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
