//! `GET /evidence`: the evidence of a preset, newest first.

use std::sync::Arc;

use domain::evidence::{EvidenceFilter, ListEvidence};
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::record::{EvidenceView, csv_head, evidence_csv_line};
use crate::endpoints::prelude::*;
use crate::endpoints::presets;
use crate::http::export::ExportFormat;
use crate::http::members::invalid;
use crate::http::response::CursorPage;
use crate::http::{export, operation};

pub(crate) const ROUTE: Route = Route::any_key(
    Method::Get,
    "/evidence",
    |call, caller, _| Box::pin(handle(call, caller)),
    tags::EVIDENCE,
    describe,
);

const PARAMETERS: [&str; 11] = [
    "preset",
    "workspace_id",
    "version",
    "question",
    "model",
    "since",
    "until",
    "labelled",
    "cursor",
    "limit",
    "format",
];

fn describe() -> Operation {
    let body = BodySchema::cursor_page::<EvidenceView<'_>>("EvidenceListResponse", "Evidence of answers.");
    let (_, _, max) = parameters::PAGE_LIMITS;
    let integer = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
    let labelled = ObjectBuilder::new().schema_type(Type::Boolean);
    Operation::new("listEvidence", "List the evidence of a preset")
        .description("One row a question, newest first. An inference key reads the presets of its workspace.")
        .parameter(text("preset", "The preset's slug; required."))
        .parameter(presets::workspace_parameter())
        .parameter(operation::query("version", "The number of the version.", integer()))
        .parameter(text("question", "The name of the question."))
        .parameter(text("model", "The id of the model that answered."))
        .parameter(text("since", "Requests that began at this time or later: a date or an RFC 3339 time in UTC."))
        .parameter(text("until", "Requests that began before this time."))
        .parameter(operation::query("labelled", "Only answers with a label, or without one.", labelled))
        .parameter(text("cursor", "The `next_cursor` of the page before."))
        .parameter(operation::query("limit", "The size of a page; 100 by default.", integer().maximum(Some(max))))
        .answer(body, "The evidence", &[400, 404, 409])
        .exported()
}

fn text(name: &str, description: &str) -> Parameter {
    operation::query(name, description, ObjectBuilder::new().schema_type(Type::String))
}

async fn handle(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
    parameters::check_names(query, &PARAMETERS)?;
    let format = ExportFormat::read(query, &["cursor", "limit"])?;
    let (limit, cursor) = (parameters::page_limit(query)?, parameters::value(query, "cursor")?);
    let filter = filter(call, caller, query).await?;
    let list = &call.gateway.services.evidence.list;
    if let Some(format) = format {
        return export(call, Arc::clone(list), format, filter).await;
    }
    let page = list.page(caller, filter, cursor.as_deref(), limit).await?;
    let data = page.rows.iter().map(EvidenceView::new).collect();
    Ok(CursorPage { data, next_cursor: page.next_cursor }.respond())
}

async fn filter(call: &Call<'_>, caller: &Principal, query: &str) -> Result<EvidenceFilter, ApiError> {
    let slug =
        parameters::value(query, "preset")?.ok_or_else(|| invalid("preset", "is required: the preset's slug"))?;
    let version = parameters::count(query, "version")?;
    let version = version.map(|number| u32::try_from(number).map_err(|_| ApiError::not_found())).transpose()?;
    let workspace_id = presets::workspace(call, caller).await?;
    let preset = call.gateway.services.presets.get(workspace_id, &slug).await?.preset;
    Ok(EvidenceFilter {
        version,
        question: parameters::value(query, "question")?,
        model: parameters::value(query, "model")?,
        since: parameters::time(query, "since")?,
        until: parameters::time(query, "until")?,
        is_labelled: parameters::switch(query, "labelled")?,
        ..EvidenceFilter::of_preset(preset.id)
    })
}

/// The rows of one read of an export.
const EXPORT_READ: u64 = 500;

/// Exports all rows of a filter.
async fn export(call: &Call<'_>, list: Arc<ListEvidence>, format: ExportFormat, filter: EvidenceFilter) -> Outcome {
    let place = call.begin_export()?;
    list.begin(&filter).await?;
    let head = if format == ExportFormat::Csv { csv_head() } else { String::new() };
    let next = async move |filter: &mut EvidenceFilter| {
        let rows = list.read_next(filter, EXPORT_READ).await?;
        let line = |row| match format {
            ExportFormat::Csv => evidence_csv_line(row),
            ExportFormat::JsonLines => export::json_line(&EvidenceView::new(row)),
        };
        Ok((!rows.is_empty()).then(|| rows.iter().map(line).collect()))
    };
    export::respond(call, (format, "evidence", place), head, filter, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_parameters_are_known() {
        parameters::assert_known(describe(), |query| parameters::check_names(query, &PARAMETERS));
    }
}
