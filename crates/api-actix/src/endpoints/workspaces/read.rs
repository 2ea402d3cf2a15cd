//! Reads workspaces.

use super::record::WorkspaceView;
use super::{name, record};
use crate::endpoints::prelude::*;

/// `GET …/workspaces`: lists workspaces.
pub(crate) const LIST: Route = Route::management(Get, "/workspaces", tags::WORKSPACES, handler!(handle_list))
    .operation("listWorkspaces", "List workspaces")
    .description("Oldest first.")
    .query(&[OFFSET, LIMIT])
    .answer(
        || BodySchema::page::<WorkspaceView<'_>>("WorkspaceListResponse", "A page of workspaces."),
        "The workspaces",
    );

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let page = call.gateway.services.workspaces.read.list(by, offset, limit).await?;
    let names = call.wire_names();
    let data = page.workspaces.iter().map(|workspace| WorkspaceView::new(workspace, names)).collect();
    Ok(Page::respond(data, page.total))
}

/// `GET …/workspaces/{id}`: reads a workspace.
pub(crate) const GET: Route = Route::management(Get, "/workspaces/{id}", tags::WORKSPACES, handler!(handle_get))
    .operation("getWorkspace", "Get a workspace")
    .description("Returns a workspace of the caller.")
    .answer(record::response, "The workspace");

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.workspaces.read.get(by, &name(call)?).await?;
    Ok(record::respond(StatusCode::OK, &found, call.wire_names()).respond())
}
