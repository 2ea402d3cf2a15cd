//! Verification of a database copy: the ledger audit, and the audit log.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use domain::audit::VerifyAuditLog;
use domain::budget::LedgerAuditor as _;
use domain::file::UnreadableDocument;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::config::{Config, DatabaseUrl};
use crate::wiring::Stores;

/// Characters that need no escaping in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');
/// The maximum number of listed problems.
const LISTED: usize = 20;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The number of usage records that were compared with their charges.
    pub records: u64,
    /// The number of audit entries.
    pub audit_entries: u64,
    /// The number of documents.
    pub documents: u64,
    /// The problems, at most 20 of each kind.
    pub problems: Vec<String>,
}

impl Verification {
    /// Returns true if no problem was found.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Describes a document whose row cannot be read. Its bytes are not in the backup, because the row names them.
pub fn unreadable_row(row: &UnreadableDocument) -> String {
    format!("document {}: its row cannot be read ({}), and its bytes are not in the backup", row.id, row.problem)
}

/// Returns the configuration with another database file.
pub fn with_database(config: &Config, file: &Path) -> anyhow::Result<Config> {
    let file = std::path::absolute(file).context("the path of the database cannot be made absolute")?;
    let path = file.to_str().context("the path of the database is not UTF-8")?;
    let mut config = config.clone();
    config.storage.url = DatabaseUrl::Sqlite(format!("sqlite://{}", utf8_percent_encode(path, PATH)));
    config.storage.file.clone_from(&file);
    config.storage.read_only = false;
    Ok(config)
}

/// Verifies the ledger and the audit log.
///
/// # Errors
/// The database cannot be read.
pub async fn verify(stores: &Stores) -> anyhow::Result<Verification> {
    let ledger = stores.reports().audit().await.context("the ledger cannot be read")?;
    let audit =
        VerifyAuditLog::new(Arc::clone(&stores.audit)).execute(None).await.context("the audit log cannot be read")?;
    let ledger_problems = ledger
        .discrepancies
        .iter()
        .map(|found| format!("ledger: {}: expected {} USD, found {} USD", found.what, found.expected, found.found));
    let mut problems: Vec<String> = ledger_problems.take(LISTED).collect();
    problems.extend(audit.violation.iter().map(|violation| format!("audit log: {violation}")));
    let rows = audit.row_violations.iter().take(LISTED);
    problems.extend(rows.map(|row| format!("audit log: {} {}: {}", row.table, row.row, row.problem)));
    Ok(Verification { records: ledger.records, audit_entries: audit.entries, documents: 0, problems })
}
