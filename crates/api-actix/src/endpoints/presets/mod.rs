//! `…/presets`: named sets of questions. Every key reads those of its workspaces; management keys change them.

pub(crate) mod change;
pub(crate) mod read;
mod record;

use domain::authority::Right;
use domain::ids::WorkspaceId;
use domain::preset::PresetError;
use domain::workspace::ChooseWorkspaceError;

use crate::endpoints::prelude::*;
use crate::http::members::located;

/// Returns the workspace that a caller reads.
pub(super) async fn workspace(call: &Call<'_>, caller: &Principal) -> Result<WorkspaceId, ApiError> {
    let named = parameters::resource(call.request.query_string(), "workspace_id")?;
    Ok(call.gateway.services.choose_files_workspace.of_records(caller, Right::Read, named.as_ref()).await?)
}

impl From<PresetError> for ApiError {
    fn from(error: PresetError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            PresetError::Restricted(restricted) => restricted.into(),
            PresetError::PreconditionFailed(failed) => failed.into(),
            PresetError::Store(store) | PresetError::Workspace(ChooseWorkspaceError::Store(store)) => {
                Self::store(store)
            }
            PresetError::InvalidName => located(plain, "name", &error),
            PresetError::UnknownDesignation => located(plain, "designated_version_id", &error),
            PresetError::NotFound => plain,
            PresetError::Workspace(ChooseWorkspaceError::Unknown) => plain.message("workspace_id: workspace not found"),
            PresetError::InvalidSlug(_)
            | PresetError::NothingToChange
            | PresetError::Workspace(ChooseWorkspaceError::Required)
            | PresetError::TooManyVersions
            | PresetError::TooManyPresets
            | PresetError::Conflict => plain.message(error.to_string()),
        }
    }
}
