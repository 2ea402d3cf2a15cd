//! Reads workspaces.

use super::record::WorkspaceView;
use super::{name, path_name, record};
use crate::endpoints::prelude::*;
use crate::http::page::{DEFAULT_LIMIT, PageRange};

/// `GET …/workspaces`: lists workspaces.
pub(crate) const LIST: Route = Route::management(
    Method::Get,
    "/workspaces",
    |call, by, _| Box::pin(handle_list(call, by)),
    tags::WORKSPACES,
    describe_list,
)
.with_query(&["offset", "limit"]);

fn describe_list() -> Operation {
    let body = BodySchema::page::<WorkspaceView<'_>>("WorkspaceListResponse", "A page of workspaces.");
    let operation = Operation::management("listWorkspaces", "List workspaces", "Oldest first.");
    PageRange::describe(operation, DEFAULT_LIMIT).answer(body, "The workspaces", &[400])
}

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let PageRange { offset, limit } = PageRange::parse(query, DEFAULT_LIMIT)?;
    let page = call.gateway.services.workspaces.read.list(by, offset, limit).await?;
    let names = call.wire_names();
    let data = page.workspaces.iter().map(|workspace| WorkspaceView::new(workspace, names)).collect();
    Ok(Page::respond(data, page.total))
}

/// `GET …/workspaces/{id}`: reads a workspace.
pub(crate) const GET: Route = Route::management(
    Method::Get,
    "/workspaces/{id}",
    |call, by, _| Box::pin(handle_get(call, by)),
    tags::WORKSPACES,
    describe_get,
);

fn describe_get() -> Operation {
    Operation::management("getWorkspace", "Get a workspace", "Returns a workspace of the caller.")
        .answer(record::response(), "The workspace", &[404, 409])
        .parameter(path_name())
}

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.workspaces.read.get(by, &name(call)?).await?;
    Ok(record::respond(StatusCode::OK, &found, call.wire_names()).respond())
}
