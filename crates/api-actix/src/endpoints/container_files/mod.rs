//! `…/containers/{container_id}/files`: the files of a container.

pub(crate) mod content;
pub(crate) mod delete;
pub(crate) mod put;
pub(crate) mod read;

use std::borrow::Cow;

use domain::api_key::ContentAccess;
use domain::container::{ContainerId, ContainerPath};

use crate::endpoints::prelude::*;

/// Returns the segment of the path that names the container.
pub(super) fn container_id(call: &Call<'_>) -> Result<String, ApiError> {
    text_of(call.parameters[0], "container_id")
}

/// Returns the segment of the path that names the file.
pub(super) fn file_id(call: &Call<'_>) -> Result<String, ApiError> {
    text_of(call.parameters[1], "file_id")
}

fn text_of(segment: &str, name: &str) -> Result<String, ApiError> {
    parameters::segment(segment)
        .map(Cow::into_owned)
        .ok_or_else(|| ApiError::invalid(format!("{name} is not UTF-8 without NUL when decoded")))
}

/// Parses the container of the path.
///
/// # Errors
/// 400 for a malformed id.
fn container(call: &Call<'_>) -> Result<ContainerId, ApiError> {
    container_id(call)?.parse().map_err(invalid)
}

/// Parses the container and the file of the path.
///
/// # Errors
/// 400 for malformed ids.
fn file(call: &Call<'_>) -> Result<(ContainerId, ContainerPath), ApiError> {
    let container = container(call)?;
    let path = ContainerPath::from_file_id(&file_id(call)?).map_err(invalid)?;
    Ok((container, path))
}

/// Returns the access to the files of the workspace.
///
/// # Errors
/// 400 for the query and for another workspace than that of an inference key, 403 for a management key.
async fn access(call: &Call<'_>, caller: &Principal) -> Result<ContentAccess, ApiError> {
    let named = parameters::resource(call.request.query_string(), "workspace_id")?;
    Ok(call.gateway.services.choose_files_workspace.of_content(caller, named.as_ref()).await?)
}

fn invalid(error: impl std::fmt::Display) -> ApiError {
    ApiError::invalid(error.to_string())
}
