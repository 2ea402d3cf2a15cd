//! Revoked keys get no answer.

use crate::history::{Call, History, Millis, Outage, Outcome, Revocation, Violation};

/// The time within which every replica that reaches the database rejects a revoked key.
const IN_FORCE: Millis = 1_000;
/// The time that a replica needs to connect to the database again after a fault.
const RECONNECT: Millis = 2_000;

/// Checks that no call of a key succeeds that began later after its acknowledged revocation than is promised. A database
/// that was replaced by its standby may have lost the revocation.
pub fn check(history: &History, _: &crate::history::Snapshot) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in history.calls.iter().filter(|call| matches!(call.outcome, Outcome::Ok { .. })) {
        let revocation = history.keys.get(call.key).and_then(|key| key.revocation);
        let Some(Revocation { acknowledged: Some(acknowledged), .. }) = revocation else { continue };
        if history.is_lost(acknowledged) {
            continue;
        }
        let allowed = acknowledged.saturating_add(allowance(history, call, acknowledged)).saturating_add(history.delay);
        if call.invoked > allowed {
            let text = format!(
                "{} was revoked at {acknowledged} ms and answered by replica {} at {} ms, which is allowed until {allowed} ms",
                history.key_name(call.key),
                call.replica,
                call.invoked,
            );
            found.push(Violation::of_calls("revocation", text, history, [call]));
        }
    }
    found
}

/// Returns the time for which a replica may still serve the key: a second, and up to `keys.max_stale_ms` while it cannot
/// reach the database.
fn allowance(history: &History, call: &Call, acknowledged: Millis) -> Millis {
    let last_outage = history
        .windows
        .iter()
        .filter(|window| {
            window.outage == Outage::Database && window.replica.is_none_or(|replica| replica == call.replica)
        })
        .filter(|window| window.began <= call.invoked && window.ended.saturating_add(RECONNECT) >= acknowledged)
        .map(|window| window.ended.saturating_add(RECONNECT))
        .max();
    let outage = last_outage.map_or(0, |ended| ended.saturating_sub(acknowledged));
    let longest = history.settings.max_stale.max(IN_FORCE);
    IN_FORCE.saturating_add(outage).min(longest)
}
