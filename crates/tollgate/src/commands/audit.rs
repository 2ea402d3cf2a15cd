//! `tollgate audit …`

use domain::audit::{AuditAnchor, AuditVerification, RowViolation, VerifyAuditLog};

use super::api;
use super::context::{parse_timestamp, time};
use crate::cli::{AuditCommand, ListAuditArgs};
use crate::commands::prelude::*;

/// Runs a command on the audit log.
pub async fn run(context: &Context, command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::List(args) => api::run(context, &args.server, async |api| list(api, &args).await).await,
        AuditCommand::Verify { anchor } => verify(context, anchor).await,
    }
}

const COLUMNS: &[Column] = &[
    ("NUMBER", "/number"),
    ("AT", "/at"),
    ("ACTOR", "/actor"),
    ("SOURCE", "/source"),
    ("OUTCOME", "/outcome"),
    ("ACTION", "/action"),
    ("SUBJECT", "/subject"),
];

async fn list(api: &Api<'_>, args: &ListAuditArgs) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(|text| parse_timestamp("--since", text)).transpose()?.map(time);
    let filter = [
        ("actor", args.actor.as_deref()),
        ("action", args.action.as_deref()),
        ("subject", args.subject.as_deref()),
        ("since", since.as_deref()),
    ];
    let entries = api.newest("/audit", &filter, args.limit).await?;
    api.show_list(&entries, COLUMNS)
}

async fn verify(context: &Context, anchor: Option<AuditAnchor>) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let found = VerifyAuditLog::new(Arc::clone(&stores.audit)).execute(anchor).await?;
    let view = VerificationView::from(&found);
    if let Some(fault) = &view.fault {
        note(&format!("error: the audit log was modified: {fault}"));
    }
    for row in &view.rows {
        note(&format!("error: {} {}: {}", row.table, row.row, row.problem));
    }
    context.output.show(&view, || describe(&view))?;
    Ok(if view.verified { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(view: &VerificationView) -> String {
    let (oldest, newest) = match (view.oldest, &view.newest) {
        (Some(oldest), Some(newest)) => (oldest.to_string(), newest.as_str()),
        _ => return "The audit log has no entries to verify.".to_owned(),
    };
    let whole = if view.fault.is_none() { "The audit log is valid" } else { "The entries before the error are valid" };
    let removed = match view.removed_by_retention {
        0 => String::new(),
        removed => format!(" Retention removed {removed} entries before."),
    };
    let rows = match view.rows.len() {
        0 => String::new(),
        rows => format!("\nManaged rows without an entry: {rows}"),
    };
    format!("{whole}: {} entries from number {oldest} on.{removed}\nNewest: {newest}{rows}", view.entries)
}

/// The result of a verification.
#[derive(Serialize)]
struct VerificationView {
    /// True if no violation was found.
    verified: bool,
    /// The number of intact entries.
    entries: u64,
    /// The sequence number of the oldest entry.
    oldest: Option<u64>,
    /// The newest entry as an anchor to store elsewhere: its number, a colon, its hash.
    newest: Option<String>,
    /// The number of entries removed by retention.
    removed_by_retention: u64,
    /// The first violation in the log.
    fault: Option<String>,
    /// Managed rows changed, added or removed without an entry.
    rows: Vec<RowFaultView>,
}

/// A managed row that differs from the log.
#[derive(Serialize)]
struct RowFaultView {
    /// The table.
    table: &'static str,
    /// The row's id, or the known part of it.
    row: String,
    /// The difference.
    problem: &'static str,
}

impl From<&AuditVerification> for VerificationView {
    fn from(found: &AuditVerification) -> Self {
        Self {
            verified: found.is_verified(),
            entries: found.entries,
            oldest: found.oldest,
            newest: found.newest.map(|newest| newest.to_string()),
            removed_by_retention: found.removed,
            fault: found.violation.as_ref().map(ToString::to_string),
            rows: found.row_violations.iter().map(RowFaultView::from).collect(),
        }
    }
}

impl From<&RowViolation> for RowFaultView {
    fn from(fault: &RowViolation) -> Self {
        Self { table: fault.table, row: fault.row.clone(), problem: fault.problem }
    }
}
