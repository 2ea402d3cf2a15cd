//! `tollgate usage …`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use domain::ids::{ApiKeyId, DecisionId, WorkspaceId};
use domain::usage::{RejectionFilter, UsageFilter, UsageOutcome, UsageRecord};

use super::Context;
use super::references::find_key;
use super::timestamp::parse_timestamp;
use super::usage_rejections::sum_rejections;
use super::usage_sum::{RecordGroup, sum};
use crate::cli::{ListUsageArgs, UsageCommand, UsageFilterArgs, UsageGroup};
use crate::config::similar;
use crate::output::{indent, note, table};
use crate::view::{List, UsageView, usage_csv_head, usage_csv_line};
use crate::wiring::{Stores, directory};

/// The default number of listed records.
const LISTED: u64 = 100;
/// Records per page.
const PAGE: u64 = 1000;

/// Runs a command on usage records.
pub async fn run(context: &Context, command: UsageCommand) -> anyhow::Result<ExitCode> {
    match command {
        UsageCommand::List(args) => list(context, args).await,
        UsageCommand::Sum(args) => {
            let (stores, filter) = open(context, &args.filter).await?;
            match args.by {
                UsageGroup::Key => sum(context, &stores, filter, RecordGroup::Key).await,
                UsageGroup::Model => sum(context, &stores, filter, RecordGroup::Model).await,
                UsageGroup::Day => sum(context, &stores, filter, RecordGroup::Day).await,
                UsageGroup::Reason => sum_rejections(context, &stores, filter).await,
            }
        }
        UsageCommand::Show { id } => show(context, &id).await,
    }
}

async fn list(context: &Context, args: ListUsageArgs) -> anyhow::Result<ExitCode> {
    let (stores, filter) = open(context, &args.filter).await?;
    if args.csv {
        return stream(context, &stores, filter, args.limit.unwrap_or(u64::MAX)).await;
    }
    let records = stores.usage.list(&filter, args.limit.unwrap_or(LISTED)).await?;
    let list = List { data: records.iter().map(UsageView::from).collect::<Vec<_>>() };
    context.output.show(&list, || {
        table(
            ["ID", "CREATED", "KEY", "MODEL", "PROVIDER", "STATUS", "REASON", "IN", "OUT", "COST USD"],
            &list.data.iter().map(row).collect::<Vec<_>>(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the stores and resolves the filter.
async fn open(context: &Context, args: &UsageFilterArgs) -> anyhow::Result<(Stores, UsageFilter)> {
    let since = args.since.as_deref().map(|text| parse_timestamp("--since", text)).transpose()?;
    let until = args.until.as_deref().map(|text| parse_timestamp("--until", text)).transpose()?;
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        bail!("--until must be later than --since");
    }
    let stores = context.stores_with_folded_journals().await?;
    let api_key = match &args.key {
        Some(key) => Some(key_id(&stores, key).await?),
        None => None,
    };
    let workspace_id = match args.workspace.as_deref() {
        Some(named) => Some(workspace_id(context, &stores, named).await?),
        None => None,
    };
    if let Some(provider) = &args.provider {
        note_unknown_provider(context, provider);
    }
    let outcome = args.status.as_deref().and_then(UsageOutcome::from_name);
    let provider = args.provider.clone();
    Ok((stores, UsageFilter { workspace_id, api_key, provider, outcome, since, until, ..UsageFilter::default() }))
}

/// Notes a provider that is not configured. Its records may exist, so this is no error.
fn note_unknown_provider(context: &Context, slug: &str) {
    let directory = directory(&context.config);
    let known: Vec<&str> = directory.all().iter().map(|endpoint| endpoint.provider.as_str()).collect();
    if !known.contains(&slug)
        && let Some(nearest) = similar(slug, known)
    {
        note(&format!("No endpoint uses the provider {slug:?}; the nearest is {nearest}."));
    }
}

/// Returns the id of a workspace; a deleted one is named by its id and has records or rejected requests.
async fn workspace_id(context: &Context, stores: &Stores, named: &str) -> anyhow::Result<WorkspaceId> {
    let found = context.workspace(stores, Some(named)).await;
    if let (Err(_), Ok(id)) = (&found, named.parse()) {
        let rejections = RejectionFilter { workspace_id: Some(id), ..RejectionFilter::default() };
        if !stores.usage.list(&UsageFilter::for_workspace(id), 1).await?.is_empty()
            || !stores.rejections.list(&rejections, 1).await?.is_empty()
        {
            return Ok(id);
        }
    }
    found
}

/// Returns the id of an inference key, deleted or not.
async fn key_id(stores: &Stores, text: &str) -> anyhow::Result<ApiKeyId> {
    let key = find_key(stores, text).await?;
    let found = stores.keys.identities(&[key]).await?;
    let id = found.first().with_context(|| format!("key {key} not found"))?.id;
    if stores.keys.find(&id.into()).await?.is_some_and(|found| found.scope.workspace_id().is_none()) {
        bail!("the key {id} is a management key and has no usage records");
    }
    Ok(id)
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

fn row(record: &UsageView) -> [String; 10] {
    [
        record.id.clone(),
        record.created_at.clone(),
        record.api_key.clone(),
        record.model.clone(),
        record.provider.clone(),
        record.outcome.to_owned(),
        record.reason.clone().unwrap_or_default(),
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
