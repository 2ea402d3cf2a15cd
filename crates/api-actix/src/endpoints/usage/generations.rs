//! `GET /generations`: the records of Decisions requests, newest first.

use domain::cursor::ReadSize;
use domain::decision::ListGenerations;
use domain::usage::{UsageFilter, UsageOutcome, UsageRecord};

use super::KEY;
use crate::endpoints::get_generation::GenerationView;
use crate::endpoints::prelude::*;
use crate::http::export::{Column, CsvValue, csv_head, csv_record};

pub(crate) const ROUTE: Route = Route::any_key(Get, "/generations", tags::USAGE, handler!(handle))
    .operation("listGenerations", "List the records of Decisions requests")
    .description(
        "Newest first by their charge. An inference key lists its own records, a management key those of its \
         workspaces. A page of large records has fewer than `limit`, and a cursor.",
    )
    .query(&[
        WORKSPACE,
        Query::text("key", KEY),
        Query::text("model", "The id of the model that answered or was tried."),
        Query::text("provider", "The slug of the provider."),
        Query::text("user", "The end user."),
        Query::new("outcome", "The outcome.", || text().enum_values(Some(UsageOutcome::ALL.map(UsageOutcome::as_str)))),
        Query::text("session_id", "The group of requests."),
        Query::text("since", "Records charged at this time or later: a date or an RFC 3339 time in UTC."),
        Query::text("until", "Records charged before this time."),
        CURSOR,
        CURSOR_LIMIT,
        FORMAT,
    ])
    .answer(
        || BodySchema::cursor_page::<GenerationView<'_>>("GenerationListResponse", "Records of Decisions requests."),
        "The records",
    );

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    let format = ExportFormat::read(query, &["cursor", "limit"])?;
    let limit = parameters::page_limit(query)?;
    let cursor = parameters::value(query, "cursor")?;
    let list = &call.routed().list_generations;
    let filter = filter(query)?;
    let (key, workspace) = (parameters::resource(query, "key")?, parameters::resource(query, "workspace_id")?);
    let filter = list.narrow(caller, filter, key.as_ref(), workspace.as_ref()).await?;
    if let Some(format) = format {
        return export(call, Arc::clone(list), format, filter).await;
    }
    let page = list.page(caller, filter, cursor.as_deref(), limit).await?;
    let data = page.generations.iter().map(GenerationView::new).collect();
    Ok(CursorPage { data, next_cursor: page.next_cursor }.respond())
}

/// Exports all records of a filter.
async fn export(call: &Call<'_>, list: Arc<ListGenerations>, format: ExportFormat, filter: UsageFilter) -> Outcome {
    let place = call.begin_export()?;
    list.begin_export(&filter).await?;
    let head = if format == ExportFormat::Csv { csv_head(COLUMNS) } else { String::new() };
    let next = async move |(filter, size): &mut (UsageFilter, ReadSize)| {
        let records = list.read_next(filter, size).await?;
        if records.is_empty() {
            return Ok(None);
        }
        let line = |record: UsageRecord| match format {
            ExportFormat::Csv => csv_record(COLUMNS, &record),
            ExportFormat::JsonLines => export::json_line(&GenerationView::new(&list.resolve(record))),
        };
        Ok(Some(records.into_iter().map(line).collect()))
    };
    export::respond(call, (format, "generations", place), head, (filter, ReadSize::FIRST), next)
}

/// Returns the filter of the query, without key and workspace.
fn filter(query: &str) -> Result<UsageFilter, ApiError> {
    let outcome = parameters::value(query, "outcome")?.map(|name| {
        let names = UsageOutcome::ALL.map(UsageOutcome::as_str).join(", ");
        UsageOutcome::from_name(&name).ok_or_else(|| ApiError::invalid(format!("outcome must be one of {names}")))
    });
    Ok(UsageFilter {
        model: parameters::value(query, "model")?,
        provider: parameters::value(query, "provider")?,
        user: parameters::value(query, "user")?,
        session_id: parameters::value(query, "session_id")?,
        outcome: outcome.transpose()?,
        since: parameters::time(query, "since")?,
        until: parameters::time(query, "until")?,
        ..UsageFilter::default()
    })
}

/// The columns. Money and prices are exact decimals.
const COLUMNS: &[Column<UsageRecord>] = &[
    ("id", |record| plain(&record.id)),
    ("created_at", |record| CsvValue::Plain(time(record.created_at))),
    ("charged_at", |record| CsvValue::Plain(time(record.charged_at))),
    ("workspace_id", |record| plain(&record.workspace_id)),
    ("api_key", |record| plain(&record.api_key)),
    ("request_id", |record| CsvValue::of(Some(record.request_id.as_str()))),
    ("requested_model", |record| CsvValue::of(Some(&record.requested_model))),
    ("model", |record| CsvValue::of(Some(record.model.as_str()))),
    ("provider", |record| CsvValue::of(Some(&record.provider))),
    ("outcome", |record| CsvValue::plain(record.outcome.as_str())),
    ("input_tokens", |record| plain(&record.input_tokens)),
    ("output_tokens", |record| plain(&record.output_tokens)),
    ("usage_source", |record| CsvValue::plain(record.usage_source.as_str())),
    ("cost_usd", |record| plain(&record.cost)),
    ("prompt_price_usd", |record| plain(&record.prices.prompt)),
    ("completion_price_usd", |record| plain(&record.prices.completion)),
    ("attempts", |record| plain(&record.attempts.len())),
    ("latency_ms", |record| plain(&record.latency.as_millis())),
    ("session_id", |record| CsvValue::of(record.session_id.as_deref())),
    ("user", |record| CsvValue::of(record.user.as_deref())),
    ("reason", |record| CsvValue::of(record.failure_reason().as_deref())),
    ("client_address", |record| CsvValue::optional(record.client_address)),
];

fn plain(value: &dyn ToString) -> CsvValue {
    CsvValue::Plain(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_rejects_unknown_outcomes() {
        let error = filter("outcome=broken").unwrap_err().text().to_owned();
        assert_eq!(error, "outcome must be one of completed, failed, cancelled, abandoned");
    }
}
