//! Acknowledged promotions are readable, rejected ones leave nothing, and no blob is left without its document.

use std::collections::BTreeSet;

use super::recovery::rejected;
use crate::history::{Call, Content, FaultWindow, History, KeyLimit, Operation, Outage, Outcome, Snapshot, Violation};

const CHECK: &str = "documents";

/// Checks the documents and their blobs after the sweep.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in &history.calls {
        let (Operation::Promote { file, number }, Outcome::Ok { id, .. }) = (call.operation, &call.outcome) else {
            continue;
        };
        let state = snapshot.documents.get(id).map(String::as_str);
        let text = match (state, snapshot.blobs.get(id)) {
            (Some("ready"), Some(Content::File(stored))) if *stored == file => match snapshot.claims.get(&number) {
                Some(claimed) if claimed == id => continue,
                Some(other) => format!("the idempotency key {number} leads to {other}, {id} was acknowledged"),
                None => format!("the idempotency key {number} of the document {id} does not exist"),
            },
            (Some("ready"), Some(_)) => format!("the document {id} has other bytes than its file"),
            (Some("ready"), None) => format!("the document {id} has no blob"),
            (Some(state), _) => format!("the document {id} is {state}"),
            (None, _) if history.is_lost(call.completed) => continue,
            (None, _) => format!("the document {id} does not exist"),
        };
        found.push(Violation::of_calls(CHECK, text, history, [call]));
    }
    let orphans = snapshot.blobs.keys().filter(|id| !snapshot.documents.contains_key(*id));
    found.extend(orphans.map(|id| violation(format!("the blob {id} has no document after the sweep"))));
    let pending = snapshot.documents.iter().filter(|(_, state)| *state != "ready");
    found.extend(pending.map(|(id, state)| violation(format!("the document {id} is {state} after the sweep"))));
    let is_claimed = |id: &String| snapshot.claims.values().any(|claimed| claimed == id);
    let unclaimed = snapshot.documents.iter().filter(|(id, state)| *state == "ready" && !is_claimed(id));
    found.extend(unclaimed.map(|(id, _)| violation(format!("the document {id} belongs to no idempotency key"))));
    let wrong = snapshot.wrong_usage.iter();
    found.extend(wrong.map(|row| violation(format!("the used storage is not the sum of the documents: {row}"))));
    found.extend(check_unacknowledged(history, snapshot));
    let cuts = history.windows.iter().filter(|window| window.outage == Outage::Blobs);
    found.extend(cuts.flat_map(|window| check_cut(window, history)));
    found
}

/// Checks that there are not more documents without an acknowledgement than calls that may have made one: a call without
/// a response, and one that was rejected while the object store could be used, because its database may have failed at
/// the end.
fn check_unacknowledged(history: &History, snapshot: &Snapshot) -> Option<Violation> {
    let (mut acknowledged, mut possible) = (BTreeSet::new(), 0);
    for call in history.calls.iter().filter(|call| matches!(call.operation, Operation::Promote { .. })) {
        match &call.outcome {
            Outcome::Ok { id, .. } => drop(acknowledged.insert(id.as_str())),
            Outcome::Rejected { status: 503, .. } if is_within_cut(history, call) => {}
            Outcome::Failed => {}
            Outcome::Rejected { .. } | Outcome::Unknown(_) | Outcome::Invalid(_) => possible += 1,
        }
    }
    let ready = snapshot.documents.iter().filter(|(_, state)| *state == "ready").map(|(id, _)| id.as_str());
    let unknown: Vec<&str> = ready.filter(|id| !acknowledged.contains(id)).collect();
    (unknown.len() > possible).then(|| {
        let count = unknown.len();
        let text = format!("{count} documents exist without an acknowledgement, {possible} calls may have made one");
        Violation { check: CHECK, text, evidence: unknown.into_iter().map(str::to_owned).collect() }
    })
}

fn is_within_cut(history: &History, call: &Call) -> bool {
    let cuts = history.windows.iter().filter(|window| window.outage == Outage::Blobs);
    cuts.into_iter().any(|window| is_within(window, call))
}

fn is_within(window: &FaultWindow, call: &Call) -> bool {
    call.invoked >= window.in_force && call.completed <= window.until
}

/// Returns true for the first call with its idempotency key. A repeated one may return a document that exists already.
fn is_first(history: &History, call: &Call) -> bool {
    let Operation::Promote { number: of_call, .. } = call.operation else { return true };
    let is_earlier = |other: &&Call| {
        matches!(other.operation, Operation::Promote { number, .. } if number == of_call)
            && other.invoked < call.invoked
    };
    !history.calls.iter().any(|other| is_earlier(&other))
}

/// Checks that no promotion succeeds without the object store, that some are tried, and that Decisions requests go on.
fn check_cut(window: &FaultWindow, history: &History) -> Vec<Violation> {
    let promotions = history.calls.iter().filter(|call| matches!(call.operation, Operation::Promote { .. }));
    let overlaps = |call: &&Call| call.invoked <= window.until && call.completed >= window.in_force;
    let tried: Vec<&Call> = promotions.filter(overlaps).collect();
    let is_ok =
        |call: &&Call| is_within(window, call) && matches!(call.outcome, Outcome::Ok { .. }) && is_first(history, call);
    let succeeded: Vec<&Call> = tried.iter().copied().filter(is_ok).collect();
    let mut found = Vec::new();
    if tried.is_empty() {
        found.push(violation(format!("no promotion was tried during {}: nothing is proved", window.fault)));
    }
    if !succeeded.is_empty() {
        let text = format!("{} promotions succeeded during {}", succeeded.len(), window.fault);
        found.push(Violation::of_calls(CHECK, text, history, succeeded));
    }
    let rejected = rejected(history, &[KeyLimit::None, KeyLimit::Rate], window.began, window.ended);
    if !rejected.is_empty() {
        let text = format!("{} Decisions requests were rejected during {}", rejected.len(), window.fault);
        found.push(Violation::of_calls(CHECK, text, history, rejected));
    }
    found
}

fn violation(text: String) -> Violation {
    Violation { check: CHECK, text, evidence: Vec::new() }
}
