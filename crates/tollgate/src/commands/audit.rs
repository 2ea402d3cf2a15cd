//! `tollgate audit …`

use std::process::ExitCode;
use std::sync::Arc;

use domain::audit::{AuditAnchor, VerifyAuditLog};

use super::Context;
use super::api::{self, Api};
use super::context::{parse_timestamp, time};
use crate::cli::{AuditCommand, ListAuditArgs};
use crate::output::{Column, note};
use crate::view::VerificationView;

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
