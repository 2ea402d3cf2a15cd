//! The checks: pure functions over a history and the state of the stores at its end.

mod bank;
mod documents;
mod rates;
mod records;
mod recovery;
mod responses;
mod revocation;
#[cfg(test)]
mod tests;

use crate::history::{History, Snapshot, Violation};

pub use recovery::{MEMORY_KIB, P99, PROCESSOR_PERMILLE};

/// Runs every check.
pub fn check(history: &History, snapshot: &Snapshot) -> Vec<Violation> {
    let checks = [
        bank::check,
        records::check,
        records::check_stages,
        records::check_times,
        records::check_ledger,
        documents::check,
        rates::check,
        revocation::check,
        responses::check_statuses,
        responses::check_deadlines,
        recovery::check,
    ];
    checks.into_iter().flat_map(|check| check(history, snapshot)).collect()
}
