//! Replicas recover by themselves, and stay within their resources.

use crate::history::{Call, FaultWindow, History, KeyLimit, Millis, Outcome, ResourceUsage, Snapshot, Violation};

/// The most resident memory of a replica.
pub const MEMORY_KIB: u64 = 256 * 1_024;
/// The most processor time of a replica, in thousandths of the duration of a fault.
pub const PROCESSOR_PERMILLE: u64 = 1_500;
/// The longest 99th percentile of the time of answers: about twice the longest of calm runs.
pub const P99: Millis = 3_000;

/// The time after a fault within which a replica draws allowances again. Until then it may reject limited requests, also
/// after it has answered some from what it had.
const DRAWS: Millis = 10_000;

/// Checks that every replica answered again after each fault, that keys with room were then always answered, and that no
/// replica exceeded the ceilings.
pub fn check(history: &History, _: &Snapshot) -> Vec<Violation> {
    history.windows.iter().flat_map(|window| check_window(window, history)).collect()
}

fn check_window(window: &FaultWindow, history: &History) -> Vec<Violation> {
    let mut found = excesses(window, history);
    let Some(recovered) = window.recovered else {
        let text = format!("not every replica answered again after {}", window.fault);
        let last = history.calls.iter().rev().filter(|call| call.completed <= window.quiet_until);
        found.push(Violation::of_calls("recovery", text, history, last.take(5)));
        return found;
    };
    let mut rejected = rejected(history, &[KeyLimit::None, KeyLimit::Rate], recovered, window.quiet_until);
    let drawn_again = recovered.max(window.ended.saturating_add(DRAWS));
    rejected.extend(self::rejected(history, &[KeyLimit::Roomy], drawn_again, window.quiet_until));
    if !rejected.is_empty() {
        let text = format!("{} calls were rejected in the quiet phase after {}", rejected.len(), window.fault);
        found.push(Violation::of_calls("recovery", text, history, rejected));
    }
    found
}

/// Returns the Decisions requests of a time that were rejected although their keys, of these kinds, have room. A rate has
/// its own check.
pub fn rejected<'a>(history: &'a History, kinds: &[KeyLimit], from: Millis, until: Millis) -> Vec<&'a Call> {
    let has_room = |call: &&Call| {
        let key = history.keys.get(call.key).filter(|key| key.revocation.is_none());
        key.is_some_and(|key| kinds.contains(&key.limit))
    };
    let is_answered = |call: &Call| {
        let is_rated = history.limit_of(call.key) == Some(KeyLimit::Rate);
        matches!(call.outcome, Outcome::Ok { .. })
            || is_rated && matches!(call.outcome, Outcome::Rejected { status: 429, .. })
    };
    let calls = history.calls.iter().filter(|call| call.invoked >= from && call.completed < until);
    calls.filter(|call| call.operation.is_decision()).filter(has_room).filter(|call| !is_answered(call)).collect()
}

fn excesses(window: &FaultWindow, history: &History) -> Vec<Violation> {
    let ResourceUsage { memory_kib, processor_permille, p99_ms, delay_ms: _ } = window.usage;
    let ceilings = [
        ("KiB of memory", memory_kib, MEMORY_KIB),
        ("thousandths of processor time", processor_permille, PROCESSOR_PERMILLE),
        ("ms at the 99th percentile", p99_ms, P99.saturating_add(history.delay)),
    ];
    let above = ceilings.into_iter().filter(|(_, used, ceiling)| used > ceiling);
    above
        .map(|(unit, used, ceiling)| {
            let text = format!("{used} {unit} during {}, the ceiling is {ceiling}", window.fault);
            Violation::of_calls("resources", text, history, std::iter::empty::<&Call>())
        })
        .collect()
}
