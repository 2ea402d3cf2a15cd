//! The printed report.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::check::{MEMORY_KIB, P99, PROCESSOR_PERMILLE};
use crate::history::{Call, FaultWindow, History, Millis, Outcome, Violation};
use crate::schedule::Phase;

/// Prints a line. A closed terminal does not stop a run.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints the schedule, and the command that repeats it.
pub fn schedule(seed: u64, seconds: u64, phases: &[Phase]) {
    line(&format!("seed {seed}; to repeat this schedule: --seed {seed} --seconds-per-fault {seconds}"));
    for (number, phase) in phases.iter().enumerate() {
        line(&format!("  {}. {phase}", number + 1));
    }
}

/// Prints the counts of a phase.
pub fn phase(number: usize, phase: Phase, window: &FaultWindow, calls: &[Call]) {
    let recovered = window.recovered.map_or_else(
        || "not recovered".to_owned(),
        |at| format!("recovered after {} ms", at.saturating_sub(window.ended)),
    );
    line(&format!("{}. {phase}: {}..{} ms, {recovered}", number + 1, window.began, window.ended));
    if let Some(target) = window.replica {
        let (affected, others): (Vec<Call>, Vec<Call>) = calls.iter().cloned().partition(|call| call.replica == target);
        line(&format!("   fault, this replica: {}", counts(&affected, window.began, window.ended)));
        line(&format!("   fault, the others: {}", counts(&others, window.began, window.ended)));
    } else {
        line(&format!("   fault: {}", counts(calls, window.began, window.ended)));
    }
    let quiet_from = window.recovered.unwrap_or(window.ended);
    line(&format!("   quiet: {}", counts(calls, quiet_from, window.quiet_until)));
    let usage = window.usage;
    line(&format!(
        "   during the fault: {} MiB, {} ms of processor time a second, p99 {} ms; this program waited {} ms for a processor",
        usage.memory_kib / 1_024,
        usage.processor_permille,
        usage.p99_ms,
        usage.delay_ms
    ));
}

/// Prints the violations and the result.
pub fn result(seed: u64, history: &History, violations: &[Violation]) {
    line(&format!("all: {}", counts(&history.calls, 0, Millis::MAX)));
    line(&format!("this program waited up to {} ms for a processor, which checks of times add", history.delay));
    line(&format!(
        "ceilings of a replica: {} MiB, {PROCESSOR_PERMILLE} ms of processor time a second, p99 {P99} ms",
        MEMORY_KIB / 1_024
    ));
    for violation in violations {
        line(&format!("VIOLATION {violation}"));
    }
    line(&format!("{} violations, seed {seed}", violations.len()));
}

/// Counts the outcomes of the calls that completed in a time.
fn counts(calls: &[Call], from: Millis, until: Millis) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    for call in calls.iter().filter(|call| call.completed >= from && call.completed < until) {
        let name = match &call.outcome {
            Outcome::Ok { .. } => "ok".to_owned(),
            Outcome::Rejected { status, .. } => status.to_string(),
            Outcome::Failed => "no connection".to_owned(),
            Outcome::Unknown(_) => "unknown".to_owned(),
            Outcome::Invalid(_) => "invalid".to_owned(),
        };
        *counts.entry(name).or_default() += 1;
    }
    let text: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if text.is_empty() { "no call".to_owned() } else { text.join(", ") }
}
