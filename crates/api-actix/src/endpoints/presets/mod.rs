//! `…/presets`: named sets of questions. Every key reads those of its workspaces; management keys change them.

pub(crate) mod change;
pub(crate) mod read;
mod record;

use domain::ids::WorkspaceId;
use domain::preset::PresetError;
use domain::workspace::ChooseWorkspaceError;

use crate::endpoints::prelude::*;

/// Returns the workspace that a caller reads.
pub(super) async fn workspace(call: &Call<'_>, caller: &Principal) -> Result<WorkspaceId, ApiError> {
    let named = parameters::resource(call.request.query_string(), "workspace_id")?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, Right::Read, named.as_ref()).await?)
}

api_error!(PresetError {
    pass: Restricted, PreconditionFailed, Store;
    kind: NotFound;
    said: InvalidSlug, NothingToChange, UnknownModel, TooManyVersions, TooManyPresets, Conflict;
    at "name": InvalidName;
    at "designated_version_id": UnknownDesignation;
    with |plain|
        PresetError::Workspace(ChooseWorkspaceError::Store(store)) => store.into(),
        PresetError::Workspace(ChooseWorkspaceError::Unknown) => plain.message("workspace_id: workspace not found"),
        error @ PresetError::Workspace(ChooseWorkspaceError::Required) => plain.message(error.to_string());
});
