//! `GET /audit`: the audit log, newest first.

use domain::audit::{AuditEntry, AuditOutcome};
use domain::operation::{AuditFilter, AuditPosition, ListAuditEntriesError};

use crate::endpoints::prelude::*;
use crate::http::export::{Column, CsvValue, csv_head, csv_record};

pub(crate) const ROUTE: Route = Route::management(Get, "/audit", tags::OPERATION, handler!(handle))
    .operation("listAuditEntries", "List the audit log")
    .description(
        "Newest first. A request reads at most 100,000 entries and returns about 1 MiB: a page may have fewer \
         entries than `limit`, also none, and a cursor. Needs read access to all workspaces.",
    )
    .query(&[
        Query::text("actor", "A text that the actor contains, such as `key:` or `user:ann`."),
        Query::text("action", "A text that the action contains, such as `key.` or `guardrail.update`."),
        Query::text("subject", "A text that the subject contains, such as an id."),
        Query::text("since", "Entries of this time or later: a date or an RFC 3339 time in UTC."),
        Query::text("until", "Entries before this time."),
        CURSOR,
        CURSOR_LIMIT,
        FORMAT,
    ])
    .answer(
        || BodySchema::cursor_page::<EntryView<'_>>("AuditListResponse", "Entries of the audit log."),
        "The entries",
    );

async fn handle(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    if let Some(format) = ExportFormat::read(query, &["cursor", "limit"])? {
        return export(call, by, format, filter(query)?);
    }
    let limit = parameters::page_limit(query)?;
    let cursor = parameters::value(query, "cursor")?;
    let page = call.gateway.services.audit_entries.page(by, &filter(query)?, cursor.as_deref(), limit).await?;
    let data = page.entries.iter().map(EntryView::new).collect();
    Ok(CursorPage { data, next_cursor: page.next_cursor }.respond())
}

/// Exports the selected entries of the whole log.
fn export(call: &Call<'_>, by: &Authority, format: ExportFormat, filter: AuditFilter) -> Outcome {
    let list = call.gateway.services.audit_entries.clone();
    list.check(by, &filter)?;
    let place = call.begin_export()?;
    let head = if format == ExportFormat::Csv { csv_head(&columns()) } else { String::new() };
    let next = async move |position: &mut AuditPosition| {
        if position.is_end() {
            return Ok(None);
        }
        let entries = list.read_next(&filter, position).await?;
        Ok(Some(entries.iter().map(|entry| EntryView::new(entry).line(format)).collect()))
    };
    export::respond(call, (format, "audit", place), head, AuditPosition::NEWEST, next)
}

fn filter(query: &str) -> Result<AuditFilter, ApiError> {
    Ok(AuditFilter {
        actor: parameters::value(query, "actor")?,
        action: parameters::value(query, "action")?,
        subject: parameters::value(query, "subject")?,
        since: parameters::time(query, "since")?,
        until: parameters::time(query, "until")?,
    })
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct EntryView<'a> {
    /// The number, from 1, without gaps.
    number: u64,
    /// The time of the change, RFC 3339 in UTC.
    at: String,
    /// `key:<id>` of an API key, `user:<name>` of the operating system, or `system`.
    actor: &'a str,
    /// The address of the client; the name of the host for a command.
    #[schema(required)]
    source: Option<&'a str>,
    /// The action, such as `guardrail.update`.
    action: &'a str,
    /// The changed object.
    subject: &'a str,
    outcome: Outcomes,
    /// The state before the change; null if the entry has none.
    #[schema(required)]
    before: Option<Object>,
    /// The state after the change; null if the entry has none.
    #[schema(required)]
    after: Option<Object>,
    /// The details as they are hashed, `before` and `after` included.
    details: Object,
    /// The digest of the managed rows after the change, in hexadecimal digits.
    state: String,
    /// The hash of the previous entry; zeros for the first.
    previous_hash: String,
    /// SHA-256 over all other members; a denied change is hashed as `refused`.
    hash: String,
}

/// The outcome of a change.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditOutcome)]
#[serde(rename_all = "lowercase")]
enum Outcomes {
    Done,
    Denied,
}

/// The columns of CSV: the members.
fn columns<'a>() -> [Column<EntryView<'a>>; 13] {
    fn json(json: Option<&RawValue>) -> CsvValue {
        CsvValue::of(json.map(RawValue::get))
    }
    [
        ("number", |entry| CsvValue::plain(&entry.number.to_string())),
        ("at", |entry| CsvValue::plain(&entry.at)),
        ("actor", |entry| CsvValue::of(Some(entry.actor))),
        ("source", |entry| CsvValue::of(entry.source)),
        ("action", |entry| CsvValue::of(Some(entry.action))),
        ("subject", |entry| CsvValue::of(Some(entry.subject))),
        ("outcome", |entry| match entry.outcome {
            Outcomes::Done => CsvValue::plain("done"),
            Outcomes::Denied => CsvValue::plain("denied"),
        }),
        ("before", |entry| json(entry.before.as_deref())),
        ("after", |entry| json(entry.after.as_deref())),
        ("details", |entry| json(Some(&entry.details))),
        ("state", |entry| CsvValue::plain(&entry.state)),
        ("previous_hash", |entry| CsvValue::plain(&entry.previous_hash)),
        ("hash", |entry| CsvValue::plain(&entry.hash)),
    ]
}

impl<'a> EntryView<'a> {
    fn line(&self, format: ExportFormat) -> String {
        match format {
            ExportFormat::Csv => csv_record(&columns(), self),
            ExportFormat::JsonLines => export::json_line(self),
        }
    }

    fn new(entry: &'a AuditEntry) -> Self {
        let members = entry.details.members().unwrap_or_default();
        let state = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, state)| opaque(state));
        Self {
            number: entry.seq,
            at: time(entry.at),
            actor: &entry.actor.name,
            source: entry.actor.source.as_deref(),
            action: &entry.action,
            subject: &entry.subject,
            outcome: match entry.outcome {
                AuditOutcome::Done => Outcomes::Done,
                AuditOutcome::Denied => Outcomes::Denied,
            },
            before: state("before"),
            after: state("after"),
            details: opaque(&entry.details),
            state: entry.state.to_string(),
            previous_hash: entry.previous_hash.to_string(),
            hash: entry.hash.to_string(),
        }
    }
}

api_error!(ListAuditEntriesError {
    pass: Restricted, Store;
    said: EmptyRange, Cursor;
});
