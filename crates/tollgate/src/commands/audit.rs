//! `tollgate audit …`

use std::process::ExitCode;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::audit::{AuditAnchor, AuditEntry, AuditLog, VerifyAuditLog};

use super::Context;
use super::context::parse_timestamp;
use crate::cli::{AuditCommand, ListAuditArgs};
use crate::output::{note, table};
use crate::view::{AuditEntryView, List, VerificationView};

/// Runs a command on the audit log.
pub async fn run(context: &Context, command: AuditCommand) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::List(args) => list(context, &args).await,
        AuditCommand::Verify { anchor } => verify(context, anchor).await,
    }
}

/// Entries per page.
const PAGE: u64 = 1000;

async fn list(context: &Context, args: &ListAuditArgs) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(|text| parse_timestamp("--since", text)).transpose()?;
    let stores = context.stores().await?;
    let entries = newest(&*stores.audit, args.limit, |entry| is_wanted(entry, args, since)).await?;
    let list = List { data: entries.iter().map(AuditEntryView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(
            ["NUMBER", "AT", "ACTOR", "SOURCE", "OUTCOME", "ACTION", "SUBJECT"],
            &list.data.iter().map(row).collect::<Vec<_>>(),
        )
    })
}

fn is_wanted(entry: &AuditEntry, args: &ListAuditArgs, since: Option<DateTime<Utc>>) -> bool {
    let contains = |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.contains(part.as_str()));
    contains(&entry.actor.name, &args.actor)
        && contains(&entry.action, &args.action)
        && contains(&entry.subject, &args.subject)
        && since.is_none_or(|since| entry.at >= since)
}

/// Returns up to `limit` wanted entries, newest first. Reads page by page: memory does not grow with the log.
async fn newest(
    log: &dyn AuditLog,
    limit: u64,
    is_wanted: impl Fn(&AuditEntry) -> bool,
) -> anyhow::Result<Vec<AuditEntry>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut end = log.newest(1).await?.first().map_or(0, |entry| entry.seq.saturating_add(1));
    while found.len() < limit {
        let from = end.saturating_sub(PAGE);
        let mut page = log.read(from, end - from).await?;
        // After removals by retention, the page begins with later entries.
        page.retain(|entry| entry.seq < end);
        if page.is_empty() {
            break;
        }
        found.extend(page.into_iter().rev().filter(&is_wanted));
        end = from;
    }
    found.truncate(limit);
    Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;
    use domain::audit::{Actor, AuditDraft};
    use domain::json::Json;
    use domain::testing::MemoryStore;

    #[tokio::test]
    async fn newest_finds_wanted_entries_on_any_page() {
        let log = MemoryStore::new().audit_log();
        assert!(newest(&*log, 9, |_| true).await.unwrap().is_empty());
        for number in 1..=2_100 {
            let action = if number % 1_000 == 1 { "rare" } else { "usual" };
            let draft = AuditDraft::done(&Actor::system(), action, "subject", Json::parse("{}").unwrap());
            log.append(&draft).await.unwrap();
        }
        let seqs = async |limit, action: &str| {
            let found = newest(&*log, limit, |entry| entry.action == action).await.unwrap();
            found.iter().map(|entry| entry.seq).collect::<Vec<_>>()
        };
        assert_eq!(seqs(9, "rare").await, [2_001, 1_001, 1]);
        assert_eq!(seqs(2, "rare").await, [2_001, 1_001]);
        assert_eq!(seqs(3, "usual").await, [2_100, 2_099, 2_098]);
        assert!(seqs(9, "missing").await.is_empty());
        assert_eq!(newest(&*log, 5_000, |_| true).await.unwrap().len(), 2_100);
    }
}
