//! The audit of the ledger.

use std::process::ExitCode;

use domain::budget::{Discrepancy, LedgerAudit, LedgerAuditor as _};
use serde::Serialize;

use crate::commands::Context;
use crate::output::table;
use crate::view::UsdNumber;

/// Compares every counter with the ledger and every charge with its tokens and prices; fails on any difference. Reads
/// one snapshot of the database, also while a server runs.
pub async fn audit(context: &Context) -> anyhow::Result<ExitCode> {
    let stores = context.stores_with_folded_journals().await?;
    let found = stores.reports().audit().await?;
    let report = Report::of(&found);
    context.output.show(&report, || report.text())?;
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    records: u64,
    counters: u64,
    allowances: u64,
    discrepancies: Vec<Row>,
}

/// A difference.
#[derive(Debug, Serialize)]
struct Row {
    what: String,
    expected_usd: UsdNumber,
    found_usd: UsdNumber,
}

impl Report {
    fn of(found: &LedgerAudit) -> Self {
        let row = |Discrepancy { what, expected, found }: &Discrepancy| Row {
            what: what.clone(),
            expected_usd: UsdNumber(*expected),
            found_usd: UsdNumber(*found),
        };
        Self {
            ok: found.discrepancies.is_empty(),
            records: found.records,
            counters: found.counters,
            allowances: found.allowances,
            discrepancies: found.discrepancies.iter().map(row).collect(),
        }
    }

    /// Returns the text for a terminal.
    fn text(&self) -> String {
        let Self { records, counters, allowances, .. } = self;
        let looked_at = format!("{records} records, {counters} counters, {allowances} allowances of processes");
        if self.ok {
            return format!("ledger consistent: {looked_at}\n");
        }
        let row = |row: &Row| [row.what.clone(), row.expected_usd.0.to_string(), row.found_usd.0.to_string()];
        let rows: Vec<_> = self.discrepancies.iter().map(row).collect();
        let count = self.discrepancies.len();
        let title = format!("ledger inconsistent, {count} findings: {looked_at}");
        format!("{title}\n{}", table(["WHAT", "EXPECTED USD", "FOUND USD"], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::money::Usd;

    #[test]
    fn audit_text_lists_exact_differences() {
        let sound = LedgerAudit { records: 3, counters: 8, allowances: 1, ..LedgerAudit::default() };
        let report = Report::of(&sound);
        assert!(report.ok);
        assert_eq!(report.text(), "ledger consistent: 3 records, 8 counters, 1 allowances of processes\n");

        let wrong = Discrepancy {
            what: "key ab daily 2026-11-21: spent".to_owned(),
            expected: Usd::from_pico(1),
            found: Usd::from_pico(-2),
        };
        let report = Report::of(&LedgerAudit { discrepancies: vec![wrong], ..sound });
        assert!(!report.ok);
        let text = report.text();
        assert!(text.starts_with("ledger inconsistent, 1 findings: 3 records"), "{text}");
        for part in ["key ab daily 2026-11-21: spent", "0.000000000001", "-0.000000000002"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(
            json,
            "{\"ok\":false,\"records\":3,\"counters\":8,\"allowances\":1,\"discrepancies\":[{\"what\":\
             \"key ab daily 2026-11-21: spent\",\"expected_usd\":0.000000000001,\"found_usd\":-0.000000000002}]}"
        );
    }
}
