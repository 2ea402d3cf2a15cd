//! `…/files`: the documents of a workspace.

pub(crate) mod content;
pub(crate) mod delete;
pub(crate) mod read;
pub(crate) mod shapes;

use domain::file::Document;
use domain::ids::WorkspaceId;
use domain::naming::ResourceName;
use domain::workspace::ChooseFilesWorkspaceError;

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::of_filter;

/// The parameters of every operation on files. Clients of one vendor send `beta`, which has no function here.
const QUERY: [Query; 3] = [FILES_WORKSPACE, PROVIDER, BETA];
const PROVIDER: Query = Query::undescribed("provider");
const BETA: Query = Query::undescribed("beta");

/// Checks the query and returns the workspace of the caller.
///
/// # Errors
/// 400 for a parameter that is not supported, and for another workspace than that of an inference key.
async fn workspace(call: &Call<'_>, caller: &Principal, right: Right) -> Result<WorkspaceId, ApiError> {
    let named = named_workspace(call)?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, right, named.as_ref()).await?)
}

/// Checks the query of a call and returns its `workspace_id`.
fn named_workspace(call: &Call<'_>) -> Result<Option<ResourceName>, ApiError> {
    let query = call.request.query_string();
    if parameters::value(query, "provider")?.is_some() {
        return Err(ApiError::invalid("provider is not supported: the gateway keeps files itself"));
    }
    parameters::resource(query, "workspace_id")
}

/// Returns the document that the path names.
///
/// # Errors
/// 404 where the workspace has no such document.
async fn find(call: &Call<'_>, workspace_id: WorkspaceId) -> Result<Document, ApiError> {
    let found = call.gateway.services.read_documents.get(workspace_id, &call.id()?).await;
    found?.ok_or_else(ApiError::not_found)
}

api_error!(ChooseFilesWorkspaceError {
    pass: WrongKeyKind, Restricted;
    said: NotOwn;
    with |plain| ChooseFilesWorkspaceError::Workspace(error) => of_filter(error);
});
