//! Evidence of the answers of presets, and their labels.

pub(crate) mod feedback;
pub(crate) mod labels;
mod record;

use domain::cursor::ReadSize;
use domain::evidence::{EvidenceError, EvidenceFilter, ListEvidence};
use domain::ids::DecisionId;

use crate::endpoints::prelude::*;
use crate::endpoints::presets;
use crate::http::export::{csv_head, csv_record};
use crate::http::members::invalid;
use record::{COLUMNS, EvidenceView};

api_error!(EvidenceError {
    pass: Restricted, Store;
    kind: NotFound;
    said: Question, LabelCount, EmptyRange, Cursor;
    with |plain| EvidenceError::Label { question, error } => located(plain, &format!("labels.{question}"), &error);
});

/// Reads the id of a Decisions request.
fn generation_id(name: &str, value: &Json) -> Result<DecisionId, ApiError> {
    read_generation_id(name, value.as_string())
}

fn read_generation_id(name: &str, text: Option<String>) -> Result<DecisionId, ApiError> {
    let id = text.and_then(|text| text.parse().ok());
    id.ok_or_else(|| invalid(name, "must be the id of a Decisions answer: gen-dec- and 1 to 64 of A-Z a-z 0-9 _ -"))
}

pub(crate) const LIST: Route = Route::any_key(Get, "/evidence", tags::EVIDENCE, handler!(handle_list))
    .operation("listEvidence", "List the evidence of a preset")
    .description(
        "One row a question, newest first. An inference key reads the presets of its workspace. A page of large rows has \
         fewer than `limit`, and a cursor.",
    )
    .query(&[
        Query::text("preset", "The preset's slug.").required(),
        PRESET_WORKSPACE,
        Query::new("version", "The number of the version.", || number(1, None)),
        Query::text("question", "The name of the question."),
        Query::text("model", "The id of the model that answered."),
        Query::text("since", "Requests that began at this time or later: a date or an RFC 3339 time in UTC."),
        Query::text("until", "Requests that began before this time."),
        Query::flag("labelled", "Only answers with a label, or without one."),
        CURSOR,
        CURSOR_LIMIT,
        FORMAT,
    ])
    .answer(
        || BodySchema::cursor_page::<EvidenceView<'_>>("EvidenceListResponse", "Evidence of answers."),
        "The evidence",
    );

async fn handle_list(call: &Call<'_>, caller: &Principal) -> Outcome {
    let query = call.request.query_string();
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

/// Exports all rows of a filter.
async fn export(call: &Call<'_>, list: Arc<ListEvidence>, format: ExportFormat, filter: EvidenceFilter) -> Outcome {
    let place = call.begin_export()?;
    list.begin(&filter).await?;
    let head = if format == ExportFormat::Csv { csv_head(COLUMNS) } else { String::new() };
    let next = async move |(filter, size): &mut (EvidenceFilter, ReadSize)| {
        let rows = list.read_next(filter, size).await?;
        let line = |row| match format {
            ExportFormat::Csv => csv_record(COLUMNS, row),
            ExportFormat::JsonLines => export::json_line(&EvidenceView::new(row)),
        };
        Ok((!rows.is_empty()).then(|| rows.iter().map(line).collect()))
    };
    export::respond(call, (format, "evidence", place), head, (filter, ReadSize::FIRST), next)
}
