//! Rates hold over all replicas, and the server that counts them delays no request when it fails.

use super::recovery::rejected;
use crate::history::{Call, FaultWindow, History, KeyLimit, Millis, Outage, Outcome, Snapshot, Violation};

const CHECK: &str = "rate";
const MINUTE: Millis = 60_000;
/// The time that a busy machine adds to single responses.
const SLACK: Millis = 500;
/// The most processes that share a limit: the replicas, and as many dead ones whose journals are not yet recovered.
const PROCESSES_PER_REPLICA: usize = 2;

/// Checks the keys with a rate, and the outages of the server that counts them.
pub fn check(history: &History, _: &Snapshot) -> Vec<Violation> {
    let is_rated = |key: &usize| history.limit_of(*key) == Some(KeyLimit::Rate);
    let rated = (0..history.keys.len()).filter(is_rated);
    let mut found: Vec<Violation> = rated
        .flat_map(|key| {
            let mut calls: Vec<&Call> = history.calls.iter().filter(|call| call.key == key).collect();
            calls.sort_unstable_by_key(|call| call.completed);
            [check_bound(history, &calls), check_room(history, &calls)]
        })
        .flatten()
        .collect();
    let outages = history.windows.iter().filter(|window| matches!(window.outage, Outage::Rates { .. }));
    found.extend(outages.flat_map(|window| check_outage(window, history)));
    found
}

/// Checks that in no time more requests are answered than the server and all shares together admit. Each admits a
/// minute's worth at once and refills by the rate; a server that loses its counts admits a minute's worth again. Replicas
/// use their shares also for a moment in which the server is slow, so they count at all times.
fn check_bound(history: &History, calls: &[&Call]) -> Option<Violation> {
    let limit = u64::from(history.settings.requests_per_minute);
    let answered: Vec<&Call> =
        calls.iter().copied().filter(|call| matches!(call.outcome, Outcome::Ok { .. })).collect();
    answered.iter().find_map(|first| {
        let mut within = Vec::new();
        // Calls that began earlier may have been counted earlier.
        for call in answered.iter().filter(|call| call.invoked >= first.invoked) {
            within.push(*call);
            // The times are rounded down.
            let elapsed = call.completed - first.invoked + 1;
            let full = 2 + forgotten(history, first.invoked, call.completed);
            let count = within.len() as u64;
            if count * MINUTE > limit * (full * MINUTE + 2 * elapsed) {
                let text = format!(
                    "{count} requests were answered within {elapsed} ms at {limit} a minute, which permits {}",
                    limit * (full * MINUTE + 2 * elapsed) / MINUTE
                );
                return Some(Violation::of_calls(CHECK, text, history, within.into_iter().rev()));
            }
        }
        None
    })
}

/// Returns how often the server lost its counts in a time.
fn forgotten(history: &History, from: Millis, until: Millis) -> u64 {
    let losses = history.windows.iter().filter(|window| window.outage == Outage::Rates { forgets: true });
    losses.filter(|window| window.began <= until && window.ended >= from).count() as u64
}

/// Checks that nobody is rejected who used less in the last minute than the smallest share of a replica.
fn check_room(history: &History, calls: &[&Call]) -> Option<Violation> {
    let processes = PROCESSES_PER_REPLICA * history.replicas.max(1);
    let share = history.settings.requests_per_minute as usize / processes;
    let is_rejection = |call: &&&Call| matches!(call.outcome, Outcome::Rejected { status: 429, .. });
    let may_count = |call: &&&Call| !is_rejection(call) && call.outcome != Outcome::Failed;
    calls.iter().filter(is_rejection).find_map(|rejection| {
        let last_minute = rejection.invoked.saturating_sub(MINUTE);
        let recent = calls.iter().filter(|call| call.completed >= last_minute && call.invoked <= rejection.completed);
        let used = recent.filter(may_count).count();
        (used < share).then(|| {
            let text = format!("429 although the key was used {used} times in the last minute, a share is {share}");
            Violation::of_calls(CHECK, text, history, [*rejection])
        })
    })
}

/// Checks that requests go on without the server, with a delay of its timeout at most.
fn check_outage(window: &FaultWindow, history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let rejected = rejected(history, &[KeyLimit::None, KeyLimit::Rate], window.began, window.ended);
    if !rejected.is_empty() {
        let text = format!("{} Decisions requests were rejected during {}", rejected.len(), window.fault);
        found.push(Violation::of_calls(CHECK, text, history, rejected));
    }
    let during = history.calls.iter().filter(|call| call.invoked >= window.in_force && call.completed <= window.until);
    let decisions: Vec<&Call> = during.filter(|call| call.operation.is_decision()).collect();
    let (mut rated, mut others) = (Vec::new(), Vec::new());
    for call in decisions {
        let responded = matches!(call.outcome, Outcome::Ok { .. } | Outcome::Rejected { status: 429, .. });
        match history.limit_of(call.key) {
            Some(KeyLimit::Rate) if responded => rated.push(call),
            Some(KeyLimit::None) if matches!(call.outcome, Outcome::Ok { .. }) => others.push(call),
            _ => {}
        }
    }
    if !rated.iter().any(|call| matches!(call.outcome, Outcome::Ok { .. })) || others.is_empty() {
        let text = format!("no request was answered by a replica's share during {}: nothing is proved", window.fault);
        found.push(Violation { check: CHECK, text, evidence: Vec::new() });
        return found;
    }
    found.extend(check_delay(window, history, &rated, &others));
    found
}

/// Compares the times of requests with a rate with those of requests that do not use the server.
fn check_delay(window: &FaultWindow, history: &History, rated: &[&Call], others: &[&Call]) -> Option<Violation> {
    let timeout = history.settings.rate_timeout;
    let (ours, theirs) = (sorted_times(rated), sorted_times(others));
    let middle = |times: &[Millis]| times.get(times.len() / 2).copied().unwrap_or_default();
    let longest = |times: &[Millis]| times.last().copied().unwrap_or_default();
    let slack = SLACK.saturating_add(history.delay);
    // Only requests that meet the first failure wait for it.
    let rules = [
        ("half of", middle(&ours), middle(&theirs).saturating_add(timeout / 2)),
        ("one of", longest(&ours), longest(&theirs).saturating_add(timeout).saturating_add(slack)),
    ];
    let (which, took, most) = rules.into_iter().find(|(_, took, most)| took > most)?;
    let text = format!(
        "{which} the {} requests with a rate took {took} ms or more during {}, at most {most} ms are permitted",
        ours.len(),
        window.fault
    );
    let slow = rated.iter().copied().filter(|call| call.completed - call.invoked >= took);
    Some(Violation::of_calls(CHECK, text, history, slow))
}

fn sorted_times(calls: &[&Call]) -> Vec<Millis> {
    let mut times: Vec<Millis> = calls.iter().map(|call| call.completed - call.invoked).collect();
    times.sort_unstable();
    times
}
