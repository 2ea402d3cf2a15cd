//! Reads guardrails and their versions.

use super::record::{GuardrailVersionView, GuardrailView};
use super::{record, version_number};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::{self, ALL_WORKSPACES, LIST_PARAMETERS, describe_filter};
use crate::http::page::{DEFAULT_LIMIT, PageRange};

/// `GET …/guardrails`: lists guardrails.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/guardrails",
    |call, by, _| Box::pin(handle_list(call, by)),
    tags::GUARDRAILS,
    describe_list,
)
.with_query(&LIST_PARAMETERS);

fn describe_list() -> Operation {
    let body = BodySchema::page::<GuardrailView<'_>>("GuardrailListResponse", "A page of guardrails.");
    let operation = Operation::management("listGuardrails", "List guardrails", "Newest first.")
        .parameter(describe_filter(ALL_WORKSPACES));
    PageRange::describe(operation, DEFAULT_LIMIT).answer(body, "The guardrails", &[400, 404, 409])
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let page = call.routed().guardrails.list(by, workspaces::filter(call, by).await?, offset, limit).await?;
    let data = page.guardrails.iter().map(GuardrailView::new).collect();
    Ok(Page::respond(data, page.total))
}

/// `GET …/guardrails/{id}`: reads a guardrail.
pub(crate) const GET: Route = Route::management(
    Method::Get,
    "/guardrails/{id}",
    |call, by, _| Box::pin(handle_get(call, by)),
    tags::GUARDRAILS,
    describe_get,
);

fn describe_get() -> Operation {
    Operation::management("getGuardrail", "Get a guardrail", "Returns a guardrail of any workspace of the caller.")
        .answer(record::response(), "The guardrail", &[404, 409])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get(by, &call.id()?).await?;
    Ok(record::respond(StatusCode::OK, &found).respond())
}

/// `GET …/guardrails/{id}/versions`: lists the versions of a guardrail.
pub(crate) const LIST_VERSIONS: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/versions",
    |call, by, _| Box::pin(handle_list_versions(call, by)),
    tags::GUARDRAILS,
    describe_list_versions,
)
.with_query(&["offset", "limit"]);

fn describe_list_versions() -> Operation {
    let description = "A page of versions of a guardrail.";
    let body = BodySchema::page::<GuardrailVersionView<'_>>("GuardrailVersionListResponse", description);
    let operation = Operation::management("listGuardrailVersions", "List the versions of a guardrail", "Newest first.");
    PageRange::describe(operation, DEFAULT_LIMIT)
        .answer(body, "The versions", &[400, 404, 409])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_list_versions(call: &Call<'_>, by: &Authority) -> Outcome {
    let range = PageRange::parse(call.request.query_string(), DEFAULT_LIMIT)?;
    let guardrails = call.routed().guardrails.clone();
    let (versions, total) = guardrails.list_versions(by, &call.id()?, range.offset, range.limit).await?;
    Ok(Page::respond(versions.iter().map(GuardrailVersionView::new).collect(), total.into()))
}

/// `GET …/guardrails/{id}/versions/{version}`: reads a version of a guardrail.
pub(crate) const GET_VERSION: Route = Route::management(
    Method::Get,
    "/guardrails/{id}/versions/{version}",
    |call, by, _| Box::pin(handle_get_version(call, by)),
    tags::GUARDRAILS,
    describe_get_version,
);

fn describe_get_version() -> Operation {
    let description = "One version of a guardrail.";
    let body = BodySchema::data::<GuardrailVersionView<'_>>("GuardrailVersionResponse", description);
    Operation::management("getGuardrailVersion", "Get a version of a guardrail", "Versions are numbered from 1.")
        .parameter(path("version", "The version's number"))
        .answer(body, "The version", &[404, 409])
        .parameter(path("id", "The guardrail's id, or its unique name."))
}

async fn handle_get_version(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get_version(by, &call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailVersionView::new(&found)))
}
