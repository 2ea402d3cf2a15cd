//! Statuses are honest, and no response comes after its deadline.

use crate::history::{Call, History, KeyLimit, Millis, Outcome, Snapshot, Violation};

/// The time that a busy machine needs beyond a deadline to deliver a response.
const SLACK: Millis = 2_000;

/// Checks that a failure of a store is never an error of the client, that every error response is a documented one, and
/// that a living replica responds to every call that it accepts.
pub fn check_statuses(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    const CHECK: &str = "status";
    let mut found: Vec<Violation> = history
        .calls
        .iter()
        .filter_map(|call| Some(Violation::of_calls(CHECK, fault_of(history, call)?, history, [call])))
        .collect();
    let panics = snapshot.panics.iter();
    found.extend(panics.map(|line| Violation {
        check: CHECK,
        text: "a replica panicked".to_owned(),
        evidence: vec![line.clone()],
    }));
    found
}

fn fault_of(history: &History, call: &Call) -> Option<String> {
    let key = history.keys.get(call.key)?;
    match &call.outcome {
        Outcome::Ok { .. } => None,
        Outcome::Failed => {
            (!history.is_interrupted(call)).then(|| "a replica that runs accepted no connection".to_owned())
        }
        Outcome::Unknown(error) => {
            (!history.is_interrupted(call)).then(|| format!("a replica that runs did not respond: {error}"))
        }
        Outcome::Invalid(error) => Some(format!("the response is not the documented one: {error}")),
        Outcome::Rejected { status: 401, .. } => {
            let may_be_revoked = key.revocation.is_some_and(|revocation| revocation.invoked <= call.completed);
            (!may_be_revoked && !history.is_lost(key.created)).then(|| "401 for a valid key".to_owned())
        }
        Outcome::Rejected { status: 402, remaining_pico, .. } => {
            if matches!(key.limit, KeyLimit::None | KeyLimit::Rate) {
                return Some("402 for a key without a limit".to_owned());
            }
            let bound = match key.limit {
                // The bound is raised by what the provider bills, and rounded up to whole tokens.
                KeyLimit::Overcharged => {
                    let raised = history.settings.overcharge_pico + history.settings.overcharge_pico / 100;
                    history.settings.bound_pico.max(raised)
                }
                // The bounds of all stages are held before the first call.
                _ => history.settings.bound_pico * call.operation.provider_calls().unwrap_or(1),
            };
            match remaining_pico {
                Some(remaining) if *remaining < bound => None,
                Some(remaining) => {
                    Some(format!("402 although {remaining} picodollars remain and the request costs at most {bound}"))
                }
                None => Some("402 without the figures of its limit".to_owned()),
            }
        }
        Outcome::Rejected { status: 429, has_retry_after, .. } if key.limit == KeyLimit::Rate => {
            (!has_retry_after).then(|| "429 without Retry-After".to_owned())
        }
        Outcome::Rejected { status: 503, has_retry_after, .. } => {
            (!has_retry_after).then(|| "503 without Retry-After".to_owned())
        }
        Outcome::Rejected { status, .. } => Some(format!("{status} is not the status of any fault of this run")),
    }
}

/// Checks that every response arrives before the deadline of its request.
pub fn check_deadlines(history: &History, _: &Snapshot) -> Vec<Violation> {
    let deadline = history.settings.request_timeout.saturating_add(SLACK).saturating_add(history.delay);
    let has_response = |call: &&Call| matches!(call.outcome, Outcome::Ok { .. } | Outcome::Rejected { .. });
    let late = history.calls.iter().filter(|call| call.operation.is_decision()).filter(has_response);
    let late = late.filter(|call| call.completed.saturating_sub(call.invoked) > deadline);
    late.map(|call| {
        let took = call.completed.saturating_sub(call.invoked);
        let text = format!("a response took {took} ms with a deadline of {} ms", history.settings.request_timeout);
        Violation::of_calls("deadline", text, history, [call])
    })
    .collect()
}
