//! `GET /generations`: the records of Decisions requests, newest first.

use std::sync::Arc;

use domain::cursor::ReadSize;
use domain::decision::ListGenerations;
use domain::usage::{UsageFilter, UsageOutcome, UsageRecord};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::{add_selection, text, usage_csv_head, usage_csv_line};
use crate::endpoints::get_generation::GenerationView;
use crate::endpoints::prelude::*;
use crate::http::export::ExportFormat;
use crate::http::response::CursorPage;
use crate::http::{export, operation};

pub(crate) const ROUTE: Route = Route::any_key(
    Method::Get,
    "/generations",
    |call, caller, _| Box::pin(handle(call, caller)),
    tags::USAGE,
    describe,
);

const PARAMETERS: [&str; 12] = [
    "workspace_id",
    "key",
    "model",
    "provider",
    "user",
    "outcome",
    "session_id",
    "since",
    "until",
    "cursor",
    "limit",
    "format",
];

fn describe() -> Operation {
    let body =
        BodySchema::cursor_page::<GenerationView<'_>>("GenerationListResponse", "Records of Decisions requests.");
    let (_, _, max) = parameters::PAGE_LIMITS;
    let string = || ObjectBuilder::new().schema_type(Type::String);
    let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(max));
    let outcome = string().enum_values(Some(UsageOutcome::ALL.map(UsageOutcome::as_str)));
    let operation = Operation::new("listGenerations", "List the records of Decisions requests").description(
        "Newest first by their charge. An inference key lists its own records, a management key those of its \
         workspaces. A page of large records has fewer than `limit`, and a cursor.",
    );
    add_selection(operation)
        .parameter(text("model", "The id of the model that answered or was tried."))
        .parameter(text("provider", "The slug of the provider."))
        .parameter(text("user", "The end user."))
        .parameter(operation::query("outcome", "The outcome.", outcome))
        .parameter(text("session_id", "The group of requests."))
        .parameter(text("since", "Records charged at this time or later: a date or an RFC 3339 time in UTC."))
        .parameter(text("until", "Records charged before this time."))
        .parameter(text("cursor", "The `next_cursor` of the page before."))
        .parameter(operation::query("limit", "The size of a page; 100 by default.", limit))
        .answer(body, "The records", &[400, 404, 409])
        .exported()
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    parameters::check_names(query, &PARAMETERS)?;
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
    let head = if format == ExportFormat::Csv { usage_csv_head() } else { String::new() };
    let next = async move |(filter, size): &mut (UsageFilter, ReadSize)| {
        let records = list.read_next(filter, size, u64::MAX).await?;
        if records.is_empty() {
            return Ok(None);
        }
        let line = |record: UsageRecord| match format {
            ExportFormat::Csv => usage_csv_line(&record),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_parameters_are_known() {
        parameters::assert_known(describe(), |query| parameters::check_names(query, &PARAMETERS));
    }

    #[test]
    fn filter_rejects_unknown_outcomes() {
        let error = filter("outcome=broken").unwrap_err().text().to_owned();
        assert_eq!(error, "outcome must be one of completed, failed, cancelled, abandoned");
    }
}
