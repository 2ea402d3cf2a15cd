//! `…/workspaces` and `…/credits`: the workspaces, their budgets and their credit. Management keys only.

pub(crate) mod budgets;
pub(crate) mod credits;
mod fields;
mod record;

use domain::ids::WorkspaceId;
use domain::json::unknown_name;
use domain::naming::{NameError, ResourceName};
use domain::retention::DeleteWorkspaceError;
use domain::workspace::{WorkspaceContent, WorkspaceError};

use crate::endpoints::prelude::*;
use record::{CreateWorkspaceRequest, UpdateWorkspaceRequest, WorkspaceView};

/// Returns the name in the path. A segment that is not valid UTF-8 names no workspace.
fn name(call: &Call<'_>) -> Result<ResourceName, ApiError> {
    Ok(ResourceName::new(call.id()?))
}

/// Returns the workspace that the query of a list or of one record names.
pub(crate) async fn filter(call: &Call<'_>, by: &Authority) -> Result<Option<WorkspaceId>, ApiError> {
    let Some(name) = parameters::value(call.request.query_string(), "workspace_id")? else { return Ok(None) };
    let found = call.gateway.services.workspaces.read.find(by, &ResourceName::new(name)).await;
    found.map(|workspace| Some(workspace.id)).map_err(of_filter)
}

/// Returns the error of a workspace that the query names.
pub(crate) fn of_filter(error: WorkspaceError) -> ApiError {
    match error {
        WorkspaceError::Name(NameError::Unknown) => {
            located(ApiError::not_found(), "workspace_id", &"workspace not found")
        }
        error => error.into(),
    }
}

api_error!(WorkspaceError {
    pass: Restricted, Name, PreconditionFailed, Store;
    kind: Contended;
    said: BudgetNotPositive, BudgetsDoNotFall, UnknownBudget, UnknownCredit, NoRate, Required, IsDefault;
    at "name": InvalidName, NoName, NameTaken;
    at "slug": InvalidSlug, SlugTaken;
    at "default_guardrail_id": UnknownGuardrail;
    at "add_usd": NoCreditToAdd, NoCreditToTake, CreditOutOfRange;
    with |plain|
        WorkspaceError::NothingToChange => plain.message("No update fields provided"),
        error @ WorkspaceError::InvalidLabel { member, .. } => located(plain, member, &error),
        ref error @ WorkspaceError::NotEmpty(ref contents) => {
            let message = format!("{error}: delete them first, or name them in `with`");
            let counts = contents.counts().into_iter();
            counts.fold(plain.message(message), |error, (kind, count)| error.metadata(kind.as_str(), count))
        };
});

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
    let (workspaces, total) = call.gateway.services.workspaces.read.list(by, offset, limit).await?;
    let names = call.wire_names();
    let data = workspaces.iter().map(|workspace| WorkspaceView::new(workspace, names)).collect();
    Ok(Page::respond(data, total))
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

/// `POST …/workspaces`: creates a workspace.
pub(crate) const CREATE: Route =
    Route::management(Post, "/workspaces", tags::WORKSPACES, handler!(handle_create, payload))
        .operation("createWorkspace", "Create a workspace")
        .description(
            "The new workspace has no budgets and no credit limit. A slug that is made of the name gets a number if \
             another workspace has it. Needs an unrestricted key.",
        )
        .query(&[Query::unique_name("True rejects a name that another workspace has.")])
        .body(BodySchema::of::<CreateWorkspaceRequest>)
        .headers(&[IDEMPOTENCY_KEY])
        .created(record::response, "The workspace");

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Unrestricted)?;
    let is_unique = parameters::unique_name(call.request.query_string())?;
    let body = call.read_json(payload).await?;
    let settings = fields::read_new(body.text()?)?;
    let (workspaces, names) = (&call.gateway.services.workspaces, call.wire_names());
    let create = async |change: &Change<'_, _>| workspaces.create.execute(change, &settings, is_unique).await;
    call.post(by, body.text()?, create, |made| record::respond(StatusCode::CREATED, made, names)).await
}

/// `PATCH …/workspaces/{id}`: changes a workspace.
pub(crate) const UPDATE: Route =
    Route::management(Patch, "/workspaces/{id}", tags::WORKSPACES, handler!(handle_update, payload))
        .operation("updateWorkspace", "Update a workspace")
        .description(
            "Changes the given members; null clears a member. A change is effective on every replica within a second. \
             Needs an unrestricted key.",
        )
        .body(BodySchema::of::<UpdateWorkspaceRequest>)
        .headers(&[IF_MATCH])
        .answer(record::response, "The updated workspace");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Unrestricted)?;
    let edit = fields::read_change(call.read_json(payload).await?.text()?)?;
    let manage = &call.gateway.services.workspaces.manage;
    let changed = manage.update(&call.change(by)?, &name(call)?, &edit).await?;
    Ok(record::respond(StatusCode::OK, &changed, call.wire_names()).respond())
}

pub(crate) const DELETE: Route =
    Route::management(Delete, "/workspaces/{id}", tags::WORKSPACES, handler!(handle_delete))
        .operation("deleteWorkspace", "Delete a workspace")
        .description(
            "Other contents than those of `with` are 400, with their counts, and nothing is deleted; so is the \
         default workspace. Usage records stay. Needs an unrestricted key.",
        )
        .query(&[
            Query::text(
                "with",
                "The contents that are deleted, too, separated by commas: `keys`, `documents`, `guardrails`, \
             `destinations`, `presets`, `container_files`.",
            ),
            Query::flag(CONFIRMATION, "Only false is supported."),
        ])
        .headers(&[IF_MATCH])
        .answer(
            || BodySchema::named::<Deleted>("WorkspaceDeletedResponse", "Confirms the deletion of a workspace."),
            "Deleted",
        );

/// The parameter of a published client that has no function here: the default workspace is never deleted.
const CONFIRMATION: &str = "confirm_default_workspace_deletion";

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    let with = read_contents(call.request.query_string())?;
    call.routed().delete_workspace.execute(&call.change(by)?, &name(call)?, &with).await?;
    Ok(Deleted::respond())
}

/// Reads the kinds of contents in the query.
fn read_contents(query: &str) -> Result<Vec<WorkspaceContent>, ApiError> {
    if parameters::switch(query, CONFIRMATION)? == Some(true) {
        return Err(ApiError::invalid(format!("{CONFIRMATION} is not supported")));
    }
    let Some(with) = parameters::value(query, "with")? else { return Ok(Vec::new()) };
    let kind = |text: &str| {
        let names = WorkspaceContent::ALL.map(WorkspaceContent::as_str);
        WorkspaceContent::from_name(text)
            .ok_or_else(|| ApiError::invalid(unknown_name("kind of contents", text, names)))
    };
    with.split(',').map(kind).collect()
}

impl From<DeleteWorkspaceError> for ApiError {
    fn from(error: DeleteWorkspaceError) -> Self {
        match error {
            DeleteWorkspaceError::Workspace(error) => error.into(),
            DeleteWorkspaceError::Key(error) => error.into(),
            DeleteWorkspaceError::Guardrail(error) => error.into(),
            DeleteWorkspaceError::Destination(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_known_kinds_separated_by_commas() {
        let read = |query: &str| read_contents(query).map_err(|error| error.text().to_owned());
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("with=keys%2Cdocuments&confirm_default_workspace_deletion=false"), {
            Ok(vec![WorkspaceContent::Keys, WorkspaceContent::Documents])
        });
        assert_eq!(
            read("with=keys,documents,guardrails,destinations,presets,container_files"),
            Ok(WorkspaceContent::ALL.to_vec())
        );
        let nearest = r#"unknown kind of contents "key"; the nearest known kind of contents is "keys""#;
        assert_eq!(read("with=key").unwrap_err(), nearest);
        for query in ["with=", "with=keys,", "with=keys&with=documents", "with=%ff"] {
            assert!(read(query).is_err(), "{query}");
        }
        let confirmed = read("confirm_default_workspace_deletion=true").unwrap_err();
        assert_eq!(confirmed, "confirm_default_workspace_deletion is not supported");
    }
}
