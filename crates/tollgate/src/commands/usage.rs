//! `tollgate usage …`: records, sums, and rejected requests.

use chrono::{DateTime, NaiveTime, Utc};

use super::api::key_name;
use super::context::{parse_timestamp, time};
use super::transfer::download;
use crate::cli::{ListUsageArgs, SumUsageArgs, UsageCommand, UsageFilterArgs, UsageGroup};
use crate::commands::prelude::*;
use crate::output::columns;

/// The default number of listed records.
const LISTED: usize = 100;
const COLUMNS: &[Column] = &[
    ("ID", "/id"),
    ("CREATED", "/created_at"),
    ("KEY", "/api_key"),
    ("MODEL", "/model"),
    ("PROVIDER", "/provider"),
    ("STATUS", "/outcome"),
    ("REASON", "/reason"),
    ("IN", "/tokens_prompt"),
    ("OUT", "/tokens_completion"),
    ("COST USD", "/total_cost"),
];
/// The columns of a sum after the group.
const SUMS: &[Column] =
    &[("REQUESTS", "/requests"), ("IN", "/input_tokens"), ("OUT", "/output_tokens"), ("COST USD", "/cost")];
const REJECTIONS: &[Column] =
    &[("REASON", "/reason"), ("STATUS", "/status"), ("REQUESTS", "/requests"), ("LAST HOUR", "/last_hour")];

/// Runs a command on usage records.
pub async fn run(api: &Api<'_>, command: UsageCommand) -> anyhow::Result<ExitCode> {
    match command {
        UsageCommand::List(args) => list(api, args).await,
        UsageCommand::Sum(args) => sum(api, args).await,
        UsageCommand::Show { id } => api.show(&api.get(&with_query("/generation", &[("id", Some(&id))])).await?),
    }
}

/// The parameters of a filter, with hashes in the place of secrets and times in UTC.
struct Filter {
    workspace: Option<String>,
    key: Option<String>,
    provider: Option<String>,
    outcome: Option<String>,
    since: Option<DateTime<Utc>>,
    until: Option<DateTime<Utc>>,
    texts: [Option<String>; 2],
}

impl Filter {
    fn new(args: UsageFilterArgs) -> anyhow::Result<Self> {
        let since = args.since.as_deref().map(|text| parse_timestamp("--since", text)).transpose()?;
        let until = args.until.as_deref().map(|text| parse_timestamp("--until", text)).transpose()?;
        ensure!(since.zip(until).is_none_or(|(since, until)| since < until), "--until must be later than --since");
        let key = args.key.as_deref().map(key_name);
        let texts = [since, until].map(|at| at.map(time));
        Ok(Self { workspace: args.workspace, key, provider: args.provider, outcome: args.status, since, until, texts })
    }

    fn of_records(&self) -> Vec<(&'static str, Option<&str>)> {
        let [since, until] = &self.texts;
        vec![
            ("workspace_id", self.workspace.as_deref()),
            ("key", self.key.as_deref()),
            ("provider", self.provider.as_deref()),
            ("outcome", self.outcome.as_deref()),
            ("since", since.as_deref()),
            ("until", until.as_deref()),
        ]
    }

    /// Returns the parameters with days in the place of times.
    fn of_sums(&self) -> anyhow::Result<Vec<(&'static str, Option<String>)>> {
        let day = |time: Option<DateTime<Utc>>| match time {
            Some(time) if time.time() != NaiveTime::MIN => {
                bail!("sums begin and end with a UTC day, such as 2027-01-31")
            }
            time => Ok(time.map(|time| time.date_naive().to_string())),
        };
        Ok(vec![
            ("workspace_id", self.workspace.clone()),
            ("key", self.key.clone()),
            ("provider", self.provider.clone()),
            ("since", day(self.since)?),
            ("until", day(self.until)?),
        ])
    }
}

async fn list(api: &Api<'_>, args: ListUsageArgs) -> anyhow::Result<ExitCode> {
    let filter = Filter::new(args.filter)?;
    if args.csv {
        let query = [&filter.of_records()[..], &[("format", Some("csv"))]].concat();
        return download(api, &with_query("/generations", &query), None).await;
    }
    let records = api.newest("/generations", &filter.of_records(), args.limit.unwrap_or(LISTED)).await?;
    api.show_list(&records, COLUMNS)
}

async fn sum(api: &Api<'_>, SumUsageArgs { by, filter }: SumUsageArgs) -> anyhow::Result<ExitCode> {
    let (group, heading) = match by {
        UsageGroup::Key => ("key", ("KEY", "/key")),
        UsageGroup::Model => ("model", ("MODEL", "/model")),
        UsageGroup::Provider => ("provider", ("PROVIDER", "/provider")),
        UsageGroup::Workspace => ("workspace", ("WORKSPACE", "/workspace")),
        UsageGroup::User => ("user", ("USER", "/user")),
        UsageGroup::Day => ("day", ("DAY", "/day")),
        UsageGroup::Reason => return count_rejections(api, filter).await,
    };
    ensure!(filter.status.is_none(), "--status applies to `usage list`, and to no sum");
    let filter = Filter::new(filter)?;
    let parameters = filter.of_sums()?;
    let mut query = vec![("group_by", Some(group))];
    query.extend(parameters.iter().map(|(name, value)| (*name, value.as_deref())));
    let sums = api.get(&with_query("/usage", &query)).await?;
    let has_name = matches!(by, UsageGroup::Key | UsageGroup::Workspace);
    let name: &[Column] = if has_name { &[("NAME", "/name")] } else { &[] };
    api.show_text(&sums, || with_total(&sums, group, &[&[heading], SUMS, name].concat()))
}

async fn count_rejections(api: &Api<'_>, filter: UsageFilterArgs) -> anyhow::Result<ExitCode> {
    if filter.provider.is_some() || filter.status.is_some() {
        bail!("--provider and --status do not apply to --by reason: rejected requests were not sent to a provider");
    }
    let filter = Filter::new(filter)?;
    let [since, until] = &filter.texts;
    let query = [
        ("workspace_id", filter.workspace.as_deref()),
        ("key", filter.key.as_deref()),
        ("since", since.as_deref()),
        ("until", until.as_deref()),
    ];
    let sums = api.get(&with_query("/usage/rejections", &query)).await?;
    api.show_text(&sums, || with_total(&sums, "reason", REJECTIONS))
}

/// Returns the table of sums with a last row for their total.
fn with_total(sums: &Json, group: &str, of: &[Column]) -> String {
    let mut rows = elements(sums);
    let total = pointer(sums, "/total").and_then(|total| total.members()).unwrap_or_default();
    let total = total.iter().map(|(name, value)| (name.as_str(), value.text()));
    rows.push(Json::object([(group, "\"total\"")].into_iter().chain(total)));
    columns(&rows, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_sums_ends_with_their_total() {
        let sums = r#"{"data":[{"day":"2027-01-01","requests":2,"cost":0.000000000001}],
            "total":{"requests":2,"input_tokens":3,"cost":0.000000000001}}"#;
        let text = with_total(&Json::parse(sums).unwrap(), "day", &[&[("DAY", "/day")], SUMS].concat());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["2027-01-01", "2", "-", "-", "0.000000000001"]);
        assert_eq!(lines[2], ["total", "2", "3", "-", "0.000000000001"]);
    }
}
