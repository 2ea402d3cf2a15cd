//! `tollgate audit …`

use std::process::ExitCode;
use std::sync::Arc;

use domain::audit::{AuditAnchor, VerifyAuditLog};

use super::Context;
use crate::cli::AuditCommand;
use crate::output::{note, table};
use crate::view::{AuditEntryView, List, VerificationView};

/// Runs a command on the audit log.
pub async fn run(context: &Context, command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::List { limit } => list(context, limit).await,
        AuditCommand::Verify { anchor } => verify(context, anchor).await,
    }
}

async fn list(context: &Context, limit: u64) -> anyhow::Result<ExitCode> {
    let stores = context.stores().await?;
    let entries = stores.audit.newest(limit).await?;
    let list = List { data: entries.iter().map(AuditEntryView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(
            ["NUMBER", "AT", "ACTOR", "SOURCE", "OUTCOME", "ACTION", "SUBJECT"],
            &list.data.iter().map(row).collect::<Vec<_>>(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &AuditEntryView) -> [String; 7] {
    [
        entry.seq.to_string(),
        entry.at.clone(),
        entry.actor.clone(),
        entry.source.clone().unwrap_or_default(),
        entry.outcome.to_owned(),
        entry.action.clone(),
        entry.subject.clone(),
    ]
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
