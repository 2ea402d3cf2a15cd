//! `tollgate usage …`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use domain::api_key::KeyReference;
use domain::ids::DecisionId;
use domain::usage::{UsageFilter, UsageRecord};

use super::Context;
use super::key::parse_key;
use crate::cli::{ListUsageArgs, UsageCommand};
use crate::output::{indent, table};
use crate::view::{List, UsageView, usage_csv_head, usage_csv_line};
use crate::wiring::Stores;

/// The default number of listed records.
const LISTED: u64 = 100;
/// Records per page.
const PAGE: u64 = 1000;

/// Runs a command on usage records.
pub async fn run(context: &Context, command: UsageCommand) -> anyhow::Result<ExitCode> {
    match command {
        UsageCommand::List(args) => list(context, args).await,
        UsageCommand::Show { id } => show(context, &id).await,
    }
}

async fn list(context: &Context, args: ListUsageArgs) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(|text| parse_timestamp("--since", text)).transpose()?;
    let until = args.until.as_deref().map(|text| parse_timestamp("--until", text)).transpose()?;
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        bail!("--until must be later than --since");
    }
    let key = args.key.as_deref().map(parse_key).transpose()?;
    let stores = context.stores_with_folded_journals().await?;
    let filter = UsageFilter { since, until, ..key_filter(context, &stores, args.workspace.as_deref(), key).await? };
    if args.csv {
        return stream(context, &stores, filter, args.limit.unwrap_or(u64::MAX)).await;
    }
    let records = stores.usage.list(&filter, args.limit.unwrap_or(LISTED)).await?;
    let list = List { data: records.iter().map(UsageView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(
            ["ID", "CREATED", "OUTCOME", "MODEL", "IN", "OUT", "COST USD"],
            &list.data.iter().map(row).collect::<Vec<_>>(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the key and its workspace. A key alone is searched for in every workspace, deleted or not.
async fn key_filter(
    context: &Context,
    stores: &Stores,
    workspace: Option<&str>,
    key: Option<KeyReference>,
) -> anyhow::Result<UsageFilter> {
    let api_key = match key {
        Some(name) => {
            let found = stores.keys.identities(&[name]).await?;
            Some(found.first().with_context(|| format!("key {name} not found"))?.id)
        }
        None => None,
    };
    if let (None, Some(id)) = (workspace, api_key) {
        if stores.keys.find(&id.into()).await?.is_some_and(|found| found.scope.workspace_id().is_none()) {
            bail!("the key {id} is a management key and has no usage records");
        }
        return Ok(UsageFilter::for_key(id));
    }
    let workspace_id = context.workspace(stores, workspace).await?;
    Ok(UsageFilter { api_key, ..UsageFilter::for_workspace(workspace_id) })
}

/// Parses a timestamp, or a date as its beginning in UTC.
fn parse_timestamp(option: &str, text: &str) -> anyhow::Result<DateTime<Utc>> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    let at = DateTime::parse_from_rfc3339(text).with_context(|| {
        format!("{option} {text:?} is neither a date nor an RFC 3339 time, for example 2027-01-31T00:00:00Z")
    })?;
    Ok(at.with_timezone(&Utc))
}

/// Writes page by page: memory does not grow with the period.
async fn stream(context: &Context, stores: &Stores, filter: UsageFilter, most: u64) -> anyhow::Result<ExitCode> {
    let mut filter = filter;
    let mut left = most;
    context.output.text(&usage_csv_head())?;
    while left > 0 {
        let page = stores.usage.list(&filter, left.min(PAGE)).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(cursor(last));
        left = left.saturating_sub(u64::try_from(page.len()).unwrap_or(u64::MAX));
        context.output.text(&page.iter().map(usage_csv_line).collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn cursor(record: &UsageRecord) -> (DateTime<Utc>, DecisionId) {
    (record.created_at, record.id.clone())
}

fn row(record: &UsageView) -> [String; 7] {
    [
        record.id.clone(),
        record.created_at.clone(),
        record.outcome.to_owned(),
        record.model.clone(),
        record.input_tokens.to_string(),
        record.output_tokens.to_string(),
        record.cost.0.to_string(),
    ]
}

async fn show(context: &Context, id: &str) -> anyhow::Result<ExitCode> {
    let Ok(id) = id.parse::<DecisionId>() else { bail!("{id:?} is not a decision id") };
    let stores = context.stores_with_folded_journals().await?;
    let Some(record) = stores.find_record().execute(&id).await? else { bail!("usage record {id} not found") };
    let view = UsageView::from(&record);
    let text = serde_json::to_string(&view)?;
    context.output.show(&view, || indent(&text))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_date_or_time() {
        let read = |text: &str| parse_timestamp("--since", text).unwrap().to_rfc3339();
        assert_eq!(read("2027-01-31"), "2027-01-31T00:00:00+00:00");
        assert_eq!(read("2027-01-31T12:30:00.5+02:00"), "2027-01-31T10:30:00.500+00:00");
        for bad in ["", "yesterday", "2027-02-30", "2027-01-31T00:00:00"] {
            let message = parse_timestamp("--since", bad).unwrap_err().to_string();
            assert!(message.contains("--since") && message.contains("neither"), "{message}");
        }
    }
}
