//! Reads guardrails and their versions.

use domain::guardrail::{GuardrailVersion, PlacedGuardrail};

use super::record::{GuardrailVersionView, GuardrailView};
use super::{record, version_number};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;

/// `GET …/guardrails`: lists guardrails.
pub(crate) const LIST: Route = Route::management(Get, "/guardrails", tags::GUARDRAILS, handler!(handle_list))
    .operation("listGuardrails", "List guardrails")
    .description("Newest first.")
    .query(&[WORKSPACE, OFFSET, LIMIT])
    .answer(
        || BodySchema::page::<GuardrailView<'_>>("GuardrailListResponse", "A page of guardrails."),
        "The guardrails",
    );

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let range = PageRange::parse(query, DEFAULT_LIMIT)?;
    let (workspace_id, guardrails) = (workspaces::filter(call, by).await?, call.routed().guardrails.clone());
    let read = async |offset, limit| {
        let page = guardrails.list(by, workspace_id, offset, limit).await?;
        Ok((page.guardrails, page.total))
    };
    let size = |placed: &PlacedGuardrail| ElementSize::of_text(placed.guardrail.stored_bytes());
    let (guardrails, total) = range.read(call, size, read).await?;
    Ok(Page::respond(guardrails.iter().map(GuardrailView::new).collect(), total))
}

/// `GET …/guardrails/{id}`: reads a guardrail.
pub(crate) const GET: Route = Route::management(Get, "/guardrails/{id}", tags::GUARDRAILS, handler!(handle_get))
    .operation("getGuardrail", "Get a guardrail")
    .description("Returns a guardrail of any workspace of the caller.")
    .answer(record::response, "The guardrail");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get(by, &call.id()?).await?;
    Ok(record::respond(StatusCode::OK, &found).respond())
}

/// `GET …/guardrails/{id}/versions`: lists the versions of a guardrail.
pub(crate) const LIST_VERSIONS: Route =
    Route::management(Get, "/guardrails/{id}/versions", tags::GUARDRAILS, handler!(handle_list_versions))
        .operation("listGuardrailVersions", "List the versions of a guardrail")
        .description("Newest first.")
        .query(&[OFFSET, LIMIT])
        .answer(
            || {
                BodySchema::page::<GuardrailVersionView<'_>>(
                    "GuardrailVersionListResponse",
                    "A page of versions of a guardrail.",
                )
            },
            "The versions",
        );

async fn handle_list_versions(call: &Call<'_>, by: &Authority) -> Outcome {
    let range = PageRange::parse(call.request.query_string(), DEFAULT_LIMIT)?;
    let guardrails = call.routed().guardrails.clone();
    let name = call.id()?;
    let read = async |offset, limit| {
        let (versions, total) = guardrails.list_versions(by, &name, offset, limit).await?;
        Ok((versions, total.into()))
    };
    let size = |version: &GuardrailVersion| ElementSize::of_text(version.guardrail.stored_bytes());
    let (versions, total) = range.read(call, size, read).await?;
    Ok(Page::respond(versions.iter().map(GuardrailVersionView::new).collect(), total))
}

/// `GET …/guardrails/{id}/versions/{version}`: reads a version of a guardrail.
pub(crate) const GET_VERSION: Route =
    Route::management(Get, "/guardrails/{id}/versions/{version}", tags::GUARDRAILS, handler!(handle_get_version))
        .operation("getGuardrailVersion", "Get a version of a guardrail")
        .description("Versions are numbered from 1.")
        .answer(
            || BodySchema::data::<GuardrailVersionView<'_>>("GuardrailVersionResponse", "One version of a guardrail."),
            "The version",
        );

async fn handle_get_version(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.routed().guardrails.get_version(by, &call.id()?, version_number(call)?).await?;
    Ok(Data::respond(StatusCode::OK, GuardrailVersionView::new(&found)))
}
