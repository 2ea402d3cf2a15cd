//! `POST /catalogue/imports`: imports catalogue rows.

use domain::model::{CatalogueImport, ImportCatalogueError, ImportMode, Model};
use domain::system::WorkOwner;
use wires::client::read_members;

use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route =
    Route::management(Post, "/catalogue/imports", tags::OPERATION, handler!(handle, payload))
        .operation("importCatalogue", "Import catalogue rows")
        .description(
            "`merge` adds and updates rows; `replace` also removes the others, except those of models that an \
             endpoint serves. A replacement needs `If-Match` with the version of a dry run (428 without it): it \
             removes the rows that the dry run named. All rows are imported, or none.",
        )
        .query(&[
            Query::new("mode", "The treatment of other rows; `merge` by default.", || {
                text().enum_values(Some(["merge", "replace"]))
            }),
            Query::flag("dry_run", "True: report the result and change nothing."),
        ])
        .body(BodySchema::of::<ImportRequest>)
        .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
        .answer(|| BodySchema::data::<ImportView>("CatalogueImportResponse", "The result of an import."), "The result")
        .also(&[428]);

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let query = call.request.query_string();
    let (mode, dry_run) = (mode(query)?, parameters::switch(query, "dry_run")?.unwrap_or_default());
    by.check(Right::Unrestricted)?;
    let body = call.read_json(payload).await?;
    let parsed = body.clone();
    let rows = call.parse(WorkOwner::System, body.len(), move || read_rows(parsed.text()?)).await?;
    let routed = call.routed();
    let (imports, warnings) = (&routed.import_catalogue, routed.list_endpoints.price_warnings(&rows));
    let response = |done: &_| RecordResponse::data(StatusCode::OK, ImportView::new(done, warnings.clone(), dry_run));
    if dry_run {
        // It changes nothing, and its Idempotency-Key stays free for the import.
        crate::http::conditions::idempotency_key(call.request.headers())?;
        let done = imports.preview(&call.change(by)?, rows, mode).await?;
        return Ok(response(&done).version(done.version).respond());
    }
    let import = async |change: &Change<'_, CatalogueImport>| imports.execute(change, rows, mode).await;
    call.post(by, body.text()?, import, response).await
}

fn mode(query: &str) -> Result<ImportMode, ApiError> {
    match parameters::value(query, "mode")?.as_deref() {
        None | Some("merge") => Ok(ImportMode::Merge),
        Some("replace") => Ok(ImportMode::Replace),
        Some(_) => Err(ApiError::invalid("mode must be merge or replace")),
    }
}

fn read_rows(text: &str) -> Result<Vec<Model>, ApiError> {
    // A dry run in the wrong place must not become an import. Files of vendors have other members beside the rows.
    if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        let [mode, dry_run] = read_members(text, &["mode", "dry_run"])?;
        if mode.or(dry_run).is_some() {
            return Err(ApiError::invalid("mode and dry_run are query parameters, not members of the body"));
        }
    }
    wires::catalogue::read_rows(text).map_err(|error| ApiError::invalid_body(error.to_string()))
}

/// Catalogue rows, in the form of the model operation. A bare array of rows is accepted, too.
#[derive(ToSchema)]
#[schema(as = CatalogueImportRequest)]
#[expect(dead_code, reason = "the schema of a body that is read by hand")]
struct ImportRequest {
    #[schema(value_type = Vec<Object>, min_items = 1)]
    data: Vec<()>,
}

/// The result of an import, in rows.
#[derive(Serialize, ToSchema)]
#[schema(as = CatalogueImport)]
struct ImportView {
    /// New rows.
    imported: usize,
    /// Changed rows.
    updated: usize,
    /// Removed rows.
    removed: usize,
    /// The ids of the removed rows.
    removed_models: Vec<String>,
    /// The models after the import that an endpoint serves.
    callable_models: usize,
    dry_run: bool,
    /// The prices of endpoints that differ from those of the rows by more than a factor of 100, and endpoints that the
    /// rows make free.
    warnings: Vec<String>,
    /// The version of the catalogue that the import is made for, as `If-Match` of a replacement takes it in quotes.
    version: String,
}

impl ImportView {
    fn new(done: &CatalogueImport, warnings: Vec<String>, dry_run: bool) -> Self {
        Self {
            imported: done.report.imported,
            updated: done.report.updated,
            removed: done.report.removed,
            removed_models: done.removed.iter().map(ToString::to_string).collect(),
            callable_models: done.callable_models,
            dry_run,
            warnings,
            version: done.version.to_string(),
        }
    }
}

api_error!(ImportCatalogueError {
    pass: Restricted, PreconditionFailed, Store;
    kind: Contended;
    said: Fault, VersionRequired;
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_merge_or_replace() {
        assert_eq!(mode("").unwrap(), ImportMode::Merge);
        assert_eq!(mode("mode=replace").unwrap(), ImportMode::Replace);
        for query in ["mode=", "mode=Replace", "mode=delete"] {
            assert_eq!(mode(query).unwrap_err().text(), "mode must be merge or replace", "{query}");
        }
    }
}
