//! `…/files`: the documents of a workspace.

pub(crate) mod content;
pub(crate) mod delete;
pub(crate) mod read;
pub(crate) mod shapes;

use domain::authority::Right;
use domain::file::Document;
use domain::ids::WorkspaceId;
use domain::naming::ResourceName;
use domain::workspace::ChooseFilesWorkspaceError;
use utoipa::openapi::path::Parameter;

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces::{describe_filter, of_filter};
use crate::http::operation;

/// A document id in examples.
const DOCUMENT_ID: &str = "tgfile_01a2183cdc287714ba96aed3abd3318f";
/// The parameters of every operation on files. Clients of one vendor send `beta`, which has no function here.
const COMMON_PARAMETERS: [&str; 3] = ["workspace_id", "provider", "beta"];

/// Checks the query and returns the workspace of the caller.
///
/// # Errors
/// 400 for a parameter that is not supported, and for another workspace than that of an inference key.
async fn workspace(
    call: &Call<'_>,
    caller: &Principal,
    right: Right,
    further: &[&str],
) -> Result<WorkspaceId, ApiError> {
    let named = named_workspace(call, further)?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, right, named.as_ref()).await?)
}

/// Checks the query of a call and returns its `workspace_id`.
fn named_workspace(call: &Call<'_>, further: &[&str]) -> Result<Option<ResourceName>, ApiError> {
    let query = call.request.query_string();
    parameters::check_names(query, &[&COMMON_PARAMETERS, further].concat())?;
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
    found.map_err(ApiError::store)?.ok_or_else(ApiError::not_found)
}

fn id_parameter() -> Parameter {
    operation::example_path("id", "The file's id", DOCUMENT_ID)
}

pub(super) fn workspace_parameter() -> Parameter {
    describe_filter(
        "the default workspace, or the only one of the key; an inference key has its own, and any other one is 400",
    )
}

impl From<ChooseFilesWorkspaceError> for ApiError {
    fn from(error: ChooseFilesWorkspaceError) -> Self {
        match error {
            ChooseFilesWorkspaceError::WrongKeyKind(error) => error.into(),
            ChooseFilesWorkspaceError::Restricted(error) => error.into(),
            ChooseFilesWorkspaceError::Workspace(error) => of_filter(error),
            ChooseFilesWorkspaceError::NotOwn => Self::from_kind(error.kind()).message(error.to_string()),
        }
    }
}
