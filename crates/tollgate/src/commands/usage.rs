//! `tollgate usage …`: records, sums, and rejected requests.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use api_actix::{usage_csv_head, usage_csv_line};
use chrono::{DateTime, Utc};
use domain::ids::{ApiKeyId, DecisionId, WorkspaceId};
use domain::money::Usd;
use domain::usage::{RejectionFilter, UsageFilter, UsageOutcome, UsageRecord};

use super::Context;
use super::context::parse_timestamp;
use super::references::find_key;
use crate::cli::{ListUsageArgs, UsageCommand, UsageFilterArgs, UsageGroup};
use crate::config::similar;
use crate::output::{indent, note, table};
use crate::view::{
    List, RejectionSumView, RejectionSumsView, RejectionTotalsView, UsageSumView, UsageSumsView, UsageTotalsView,
    UsageView, UsdNumber,
};
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
    })
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
    let workspaces = workspace_id.map(|id| vec![id]);
    Ok((stores, UsageFilter { workspaces, api_key, provider, outcome, since, until, ..UsageFilter::default() }))
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
        let rejections = RejectionFilter { workspaces: Some(vec![id]), ..RejectionFilter::default() };
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
    (record.charged_at, record.id.clone())
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
    context.output.show(&view, || indent(&text))
}

/// A property that usage records are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordGroup {
    /// The key.
    Key,
    /// The model.
    Model,
    /// The UTC day of the charge.
    Day,
}

/// A sum of usage records. Sums of 64-bit amounts do not overflow it.
#[derive(Debug, Clone, Copy, Default)]
struct UsageTotals {
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_pico: i128,
}

impl UsageTotals {
    fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_pico += other.cost_pico;
    }

    fn view(self) -> anyhow::Result<UsageTotalsView> {
        let pico = i64::try_from(self.cost_pico).context("the sum of the costs exceeds the range of amounts")?;
        Ok(UsageTotalsView {
            requests: self.requests,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost: UsdNumber(Usd::from_pico(pico)),
        })
    }
}

impl From<&UsageRecord> for UsageTotals {
    fn from(record: &UsageRecord) -> Self {
        Self {
            requests: 1,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            cost_pico: record.cost.pico().into(),
        }
    }
}

/// Prints the sums of the records that match the filter, the highest cost or the earliest day first. The filter selects
/// by the time of the charge, so that every day is complete and the groups of a period have one total.
pub async fn sum(
    context: &Context,
    stores: &Stores,
    mut filter: UsageFilter,
    by: RecordGroup,
) -> anyhow::Result<ExitCode> {
    let mut groups: BTreeMap<String, UsageTotals> = BTreeMap::new();
    loop {
        let page = stores.usage.list(&filter, PAGE).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(cursor(last));
        for record in &page {
            groups.entry(group_of(record, by)).or_default().add(record.into());
        }
    }
    let mut total = UsageTotals::default();
    for sum in groups.values() {
        total.add(*sum);
    }
    let mut data = Vec::with_capacity(groups.len());
    for (group, sum) in ordered(groups, by) {
        let name = if by == RecordGroup::Key { key_name(stores, &group).await? } else { None };
        data.push(UsageSumView { group, name, sum: sum.view()? });
    }
    let view = UsageSumsView { by: word(by), data, total: total.view()? };
    context.output.show(&view, || describe_sum(&view, by))
}

fn group_of(record: &UsageRecord, by: RecordGroup) -> String {
    match by {
        RecordGroup::Key => record.api_key.to_string(),
        RecordGroup::Model => record.model.to_string(),
        RecordGroup::Day => record.charged_at.date_naive().to_string(),
    }
}

fn ordered(groups: BTreeMap<String, UsageTotals>, by: RecordGroup) -> Vec<(String, UsageTotals)> {
    let mut groups: Vec<(String, UsageTotals)> = groups.into_iter().collect();
    if by != RecordGroup::Day {
        groups.sort_by_key(|(_, sum)| Reverse(sum.cost_pico));
    }
    groups
}

async fn key_name(stores: &Stores, id: &str) -> anyhow::Result<Option<String>> {
    let Ok(id) = id.parse::<ApiKeyId>() else { return Ok(None) };
    Ok(stores.keys.find(&id.into()).await?.map(|key| key.name.as_str().to_owned()))
}

fn word(by: RecordGroup) -> &'static str {
    match by {
        RecordGroup::Key => "key",
        RecordGroup::Model => "model",
        RecordGroup::Day => "day",
    }
}

fn describe_sum(view: &UsageSumsView, by: RecordGroup) -> String {
    let row = |group: &str, name: &str, sum: &UsageTotalsView| {
        let [requests, input, output, cost] = sum.cells();
        [group.to_owned(), requests, input, output, cost, name.to_owned()]
    };
    let mut rows: Vec<[String; 6]> =
        view.data.iter().map(|one| row(&one.group, one.name.as_deref().unwrap_or_default(), &one.sum)).collect();
    rows.push(row("total", "", &view.total));
    let (group, name) = match by {
        RecordGroup::Key => ("KEY", "NAME"),
        RecordGroup::Model => ("MODEL", ""),
        RecordGroup::Day => ("DAY", ""),
    };
    table([group, "REQUESTS", "IN", "OUT", "COST USD", name], &rows)
}

/// Prints the numbers of rejected requests per status and reason, the highest number first.
pub async fn sum_rejections(context: &Context, stores: &Stores, filter: UsageFilter) -> anyhow::Result<ExitCode> {
    let sums = stores.rejections.sum(&rejection_filter(&filter)?).await?;
    let requests = sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add);
    let data = sums.iter().map(RejectionSumView::from).collect();
    let view = RejectionSumsView { by: "reason", data, total: RejectionTotalsView { requests } };
    context.output.show(&view, || describe_rejections(&view))
}

/// Converts the filter of usage records; rejected requests have neither a provider nor an outcome.
fn rejection_filter(filter: &UsageFilter) -> anyhow::Result<RejectionFilter> {
    if filter.provider.is_some() || filter.outcome.is_some() {
        bail!("--provider and --status do not apply to --by reason: rejected requests were not sent to a provider");
    }
    let UsageFilter { workspaces, api_key, since, until, .. } = filter;
    Ok(RejectionFilter { workspaces: workspaces.clone(), api_key: *api_key, since: *since, until: *until })
}

fn describe_rejections(view: &RejectionSumsView) -> String {
    let mut rows: Vec<[String; 4]> = view.data.iter().map(RejectionSumView::line).collect();
    rows.push(["total".to_owned(), String::new(), view.total.requests.to_string(), String::new()]);
    table(["REASON", "STATUS", "REQUESTS", "LAST HOUR"], &rows)
}

#[cfg(test)]
mod tests {
    use domain::usage::UsageOutcome;

    use super::*;

    fn totals(cost_pico: i128) -> UsageTotals {
        UsageTotals { requests: 1, input_tokens: 2, output_tokens: 3, cost_pico }
    }

    #[test]
    fn sum_is_exact_and_bounded() {
        let mut sum = totals(1);
        sum.add(totals(9_007_199_254_740_993));
        assert_eq!(sum.view().unwrap().cells(), ["2", "4", "6", "9007.199254740994"]);
        sum.add(totals(i64::MAX.into()));
        assert!(sum.view().unwrap_err().to_string().contains("exceeds"));
    }

    #[test]
    fn groups_are_ordered_by_cost_and_days_by_date() {
        let groups = || BTreeMap::from([("2027-01-01".to_owned(), totals(1)), ("2027-01-02".to_owned(), totals(2))]);
        let names = |by| ordered(groups(), by).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(RecordGroup::Day), ["2027-01-01", "2027-01-02"]);
        assert_eq!(names(RecordGroup::Model), ["2027-01-02", "2027-01-01"]);
    }

    #[test]
    fn filter_rejects_properties_that_rejected_requests_lack() {
        let provider = UsageFilter { provider: Some("alpha".to_owned()), ..UsageFilter::default() };
        let outcome = UsageFilter { outcome: Some(UsageOutcome::Failed), ..UsageFilter::default() };
        for filter in [provider, outcome] {
            assert!(rejection_filter(&filter).unwrap_err().to_string().contains("--by reason"));
        }
        assert_eq!(rejection_filter(&UsageFilter::default()).unwrap(), RejectionFilter::default());
    }
}
