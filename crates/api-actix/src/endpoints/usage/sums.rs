//! `GET /usage`: sums of usage and cost.

use domain::decision::{SumUsageRequest, UsageReader, UsageSums};
use domain::usage::{UsageGroup, UsageSum, UsageSumQuery, UsageTotals};
use utoipa::openapi::schema::ObjectBuilder;

use super::KEY;
use crate::endpoints::prelude::*;
use crate::http::export::{CsvValue, csv_line};

pub(crate) const ROUTE: Route = Route::any_key(Get, "/usage", tags::USAGE, handler!(handle))
    .operation("getUsage", "Sum usage and cost")
    .description(
        "An inference key sums its own usage, a management key that of its workspaces. Days are UTC days of the \
         charges. With `user`, usage is summed from records, of up to 31 days.",
    )
    .query(&[
        Query::new("group_by", "The groups.", group_by),
        WORKSPACE,
        Query::text("key", KEY),
        Query::text("since", "The first UTC day, YYYY-MM-DD. Default: 30 days before `until`."),
        Query::text("until", "The day after the last one. Default: tomorrow."),
        Query::text("model", "The id of the model that answered or was tried."),
        Query::text("provider", "The slug of the provider."),
        Query::text("user", "The end user."),
        FORMAT,
    ])
    .answer(|| BodySchema::named::<UsageView>("UsageResponse", "Sums of usage and cost."), "The sums");

fn group_by() -> ObjectBuilder {
    let names = UsageGroup::ALL.map(UsageGroup::as_str).join(", ");
    text().description(Some(format!("Up to two of {names}, separated by a comma. Without it: one row with the total.")))
}

/// The most groups.
const MAX_GROUPS: usize = 2;

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let format = ExportFormat::read(query, &[])?;
    let request = request(query)?;
    let groups = request.groups.clone();
    let place = format.map(|_| call.begin_export()).transpose()?;
    let (reader, sum_usage) = (UsageReader::from(caller), Arc::clone(&call.gateway.services.sum_usage));
    let (Some(format), Some(place)) = (format, place) else {
        let sums = sum_usage.execute(&reader, request).await?;
        return Ok(HttpResponse::Ok().json(UsageView::new(&sums, &groups)));
    };
    let sums = sum_usage.begin(&reader, request).await?;
    let head = if format == ExportFormat::Csv { csv_line(&columns(&groups)) } else { String::new() };
    let next = async move |sums: &mut UsageSumQuery| {
        let rows = sum_usage.read_next(sums, EXPORT_READ).await?;
        let lines: String = rows.iter().map(|row| UsageRow::new(row, &groups).line(&groups, format)).collect();
        Ok(Some(lines).filter(|lines| !lines.is_empty()))
    };
    export::respond(call, (format, "usage", place), head, sums, next)
}

fn request(query: &str) -> Result<SumUsageRequest, ApiError> {
    Ok(SumUsageRequest {
        groups: groups(parameters::value(query, "group_by")?.as_deref().unwrap_or_default())?,
        since: parameters::date(query, "since")?,
        until: parameters::date(query, "until")?,
        key: parameters::resource(query, "key")?,
        workspace: parameters::resource(query, "workspace_id")?,
        model: parameters::value(query, "model")?,
        provider: parameters::value(query, "provider")?,
        user: parameters::value(query, "user")?,
    })
}

fn groups(text: &str) -> Result<Vec<UsageGroup>, ApiError> {
    let mut groups = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let group = UsageGroup::from_name(name).ok_or_else(|| {
            let names = UsageGroup::ALL.map(UsageGroup::as_str).join(", ");
            ApiError::invalid(format!("group_by must be up to {MAX_GROUPS} of {names}"))
        })?;
        if groups.contains(&group) {
            return Err(ApiError::invalid(format!("group_by has {name} more than once")));
        }
        groups.push(group);
    }
    if groups.len() > MAX_GROUPS {
        return Err(ApiError::invalid(format!("group_by has {} groups; it may have up to {MAX_GROUPS}", groups.len())));
    }
    Ok(groups)
}

/// The rows that an export reads at a time.
const EXPORT_READ: u64 = 2_000;

/// Returns the names of the columns of CSV: the members of the rows.
fn columns(groups: &[UsageGroup]) -> Vec<CsvValue> {
    let has_name = groups.iter().any(|group| matches!(group, UsageGroup::Key | UsageGroup::Workspace));
    let of_groups = groups.iter().map(|group| group.as_str()).chain(has_name.then_some("name"));
    of_groups.chain(["requests", "input_tokens", "output_tokens", "cost"]).map(CsvValue::plain).collect()
}

/// Sums of usage and their total.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
struct UsageView {
    data: Vec<UsageRow>,
    /// The exact sum of the rows.
    total: TotalsView,
}

/// The usage of one combination of the groups. Only members of the groups are present.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageRow)]
struct UsageRow {
    /// The UTC day of the charges, `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The id of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// The id of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The model of the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The provider of the records.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// The end user; null for requests without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    #[expect(clippy::option_option, reason = "absent, null, a name")]
    user: Option<Option<String>>,
    /// The name of the key, or else of the workspace; null if it no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    #[expect(clippy::option_option, reason = "absent, null, a name")]
    name: Option<Option<String>>,
    #[serde(flatten)]
    totals: TotalsView,
}

/// Totals of usage.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageTotals)]
struct TotalsView {
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// The cost in USD.
    cost: Decimal,
}

impl TotalsView {
    fn new(totals: UsageTotals) -> Self {
        let UsageTotals { requests, input_tokens, output_tokens, cost } = totals;
        Self { requests, input_tokens, output_tokens, cost: usd(cost) }
    }
}

impl UsageView {
    fn new(sums: &UsageSums, groups: &[UsageGroup]) -> Self {
        let row = |row: &UsageSum| UsageRow::new(row, groups);
        Self { data: sums.rows.iter().map(row).collect(), total: TotalsView::new(sums.total) }
    }
}

impl UsageRow {
    fn line(&self, groups: &[UsageGroup], format: ExportFormat) -> String {
        if format == ExportFormat::JsonLines {
            return export::json_line(self);
        }
        let cell = |group: &UsageGroup| match group {
            UsageGroup::Day => CsvValue::plain(self.day.as_deref().unwrap_or_default()),
            UsageGroup::Workspace => CsvValue::plain(self.workspace.as_deref().unwrap_or_default()),
            UsageGroup::Key => CsvValue::plain(self.key.as_deref().unwrap_or_default()),
            UsageGroup::Model => CsvValue::of(self.model.as_deref()),
            UsageGroup::Provider => CsvValue::of(self.provider.as_deref()),
            UsageGroup::User => CsvValue::of(self.user.as_ref().and_then(Option::as_deref)),
        };
        let mut cells: Vec<CsvValue> = groups.iter().map(cell).collect();
        cells.extend(self.name.as_ref().map(|name| CsvValue::of(name.as_deref())));
        let TotalsView { requests, input_tokens, output_tokens, cost } = &self.totals;
        cells.extend([requests, input_tokens, output_tokens].map(|count| CsvValue::plain(&count.to_string())));
        cells.push(CsvValue::plain(cost.get()));
        csv_line(&cells)
    }

    fn new(row: &UsageSum, groups: &[UsageGroup]) -> Self {
        let has = |group| groups.contains(&group);
        let name = match (has(UsageGroup::Key), has(UsageGroup::Workspace)) {
            (true, _) => Some(row.key_name.clone()),
            (false, true) => Some(row.workspace_name.clone()),
            (false, false) => None,
        };
        Self {
            day: row.day.map(|day| day.to_string()),
            workspace: row.workspace_id.map(|id| id.to_string()),
            key: row.api_key.map(|id| id.to_string()),
            model: row.model.clone(),
            provider: row.provider.clone(),
            user: has(UsageGroup::User).then(|| row.user.clone()),
            name,
            totals: TotalsView::new(row.totals),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_up_to_two_different_ones() {
        let parse = |text| groups(text).map_err(|error| error.text().to_owned());
        assert_eq!(parse(""), Ok(Vec::new()));
        assert_eq!(parse("day, key"), Ok(vec![UsageGroup::Day, UsageGroup::Key]));
        for (text, part) in [("day,day", "more than once"), ("day,key,model", "has 3 groups"), ("x", "up to 2 of day,")]
        {
            assert!(parse(text).unwrap_err().contains(part), "{text}");
        }
    }
}
