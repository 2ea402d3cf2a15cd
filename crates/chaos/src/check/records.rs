//! Every acknowledged answer has its record, and the ledger adds up.

use std::collections::BTreeMap;

use crate::history::{Call, History, Millis, Operation, Outcome, Record, Snapshot, Violation};
use crate::subjects::PRESET_QUESTIONS;

/// The age from which on an answer must be in the database although its process died with its journal: usually it is
/// there within 100 ms. Until then the journal is the only copy, as docs/runbook.md says.
pub const UNFOLDED: Millis = 2_000;

/// The difference between the clock of the database and what a replica on a busy machine knows of it.
const CLOCK_SLACK: i64 = 2_000;

/// Checks that every acknowledged answer has one record with its cost and the outcome `completed`.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    const CHECK: &str = "set";
    let mut records: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in &snapshot.records {
        records.entry(&record.id).or_default().push(record);
    }
    let repeated = records.iter().filter(|(_, found)| found.len() > 1).map(|(id, found)| {
        let text = format!("{id} has {} records", found.len());
        Violation { check: CHECK, text, evidence: found.iter().map(|record| format!("{record:?}")).collect() }
    });
    let mut found: Vec<Violation> = repeated.collect();
    let mut answered: BTreeMap<&str, &Call> = BTreeMap::new();
    for (call, id, cost_pico) in history.answers() {
        if let Some(first) = answered.insert(id, call) {
            found.push(Violation::of_calls(CHECK, format!("{id} was answered twice"), history, [first, call]));
        }
        let text = match records.get(id).and_then(|records| records.first()) {
            None if may_be_lost(history, call) => continue,
            None => format!("the answer {id} has no record"),
            Some(record) if record.outcome != "completed" => {
                format!("the record of the answer {id} has the outcome {}", record.outcome)
            }
            Some(record) if record.cost_pico != cost_pico => {
                format!("the answer {id} cost {cost_pico} picodollars, its record says {}", record.cost_pico)
            }
            Some(_) => continue,
        };
        found.push(Violation::of_calls(CHECK, text, history, [call]));
    }
    found
}

/// Checks that every answer of the second stage is charged for both, and that every answer of the preset has one row of
/// evidence a question; that a request without an answer has none, and that no row is left without its record.
pub fn check_stages(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    const CHECK: &str = "stages";
    let plain = |text, evidence| Violation { check: CHECK, text, evidence };
    let mut found = Vec::new();
    for (call, id, cost_pico) in history.answers() {
        // A second stage that began too late, or failed, leaves the answers of the first.
        let Outcome::Ok { stage: stage @ 2.., .. } = call.outcome else { continue };
        if cost_pico != stage * history.settings.call_cost_pico {
            let text = format!("the answer {id} of {stage} stages cost {cost_pico} picodollars");
            found.push(Violation::of_calls(CHECK, text, history, [call]));
        }
    }
    for record in &snapshot.records {
        let Some(questions) = &record.evidence else { continue };
        let expected: &[&str] = if record.outcome == "completed" { &PRESET_QUESTIONS } else { &[] };
        if questions != expected {
            let text = format!("{} ({}) has evidence of {questions:?}, not {expected:?}", record.id, record.outcome);
            found.push(plain(text, vec![format!("{record:?}")]));
        }
    }
    if !snapshot.lone_evidence.is_empty() {
        let text = format!("{} rows of evidence have no record of a preset", snapshot.lone_evidence.len());
        found.push(plain(text, snapshot.lone_evidence.clone()));
    }
    let is_staged = |(call, ..): &(&Call, &str, i64)| call.operation == Operation::DecideInStages;
    if history.answers().next().is_some() && !history.answers().any(|answer| is_staged(&answer)) {
        found.push(plain("no request of the preset was answered: nothing is proved".to_owned(), Vec::new()));
    }
    found
}

/// Returns true if the process of an answer died with its journal shortly after it.
fn may_be_lost(history: &History, call: &Call) -> bool {
    history.restarts.iter().any(|restart| {
        restart.lost_journal
            && (restart.replica, restart.incarnation) == (call.replica, call.incarnation)
            && call.completed.saturating_add(UNFOLDED) >= restart.stopped
    })
}

/// Checks that every answer is charged at a time at which its request ran, by the clock of the database, whatever the
/// clock of the replica is.
pub fn check_times(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let times: BTreeMap<&str, i64> =
        snapshot.records.iter().filter_map(|record| Some((record.id.as_str(), record.charged_at?))).collect();
    let mut found = Vec::new();
    for (call, id, _) in history.answers() {
        let Some(at) = times.get(id).map(|at| at.saturating_sub(history.started_at)) else { continue };
        let bound = |millis: Millis| i64::try_from(millis).unwrap_or(i64::MAX);
        let (from, until) = (bound(call.invoked), bound(call.completed));
        if at < from - CLOCK_SLACK || at > until + CLOCK_SLACK {
            let text = format!("the answer {id} was charged at {at} ms, its request ran from {from} to {until} ms");
            found.push(Violation::of_calls("clock", text, history, [call]));
        }
    }
    found
}

/// Checks that the audit of the ledger passes, and that no allowance is left of ended processes.
pub fn check_ledger(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    const CHECK: &str = "counter";
    let mut found = Vec::new();
    let none = || std::iter::empty::<&Call>();
    if let Some(error) = &snapshot.audit_error {
        let text = format!("`doctor --audit` failed: {error}");
        found.push(Violation::of_calls(CHECK, text, history, none()));
    }
    if snapshot.allotted_pico != 0 {
        let text = format!("{} picodollars are allotted although no process is left", snapshot.allotted_pico);
        found.push(Violation::of_calls(CHECK, text, history, none()));
    }
    let answers = history.calls.iter().filter(|call| matches!(call.outcome, Outcome::Ok { .. })).count();
    if answers == 0 {
        found.push(Violation::of_calls(CHECK, "no call was answered: nothing is proved".to_owned(), history, none()));
    }
    found
}
