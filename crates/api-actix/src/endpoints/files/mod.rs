//! `…/files`: the documents of a workspace.

pub(crate) mod content;
pub(crate) mod delete;
pub(crate) mod read;
pub(crate) mod shapes;

use domain::api_key::InferenceKey;
use domain::file::Document;
use domain::ids::WorkspaceId;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::endpoints::prelude::*;
use crate::http::operation;

/// A document id in examples.
const DOCUMENT_ID: &str = "tgfile_01a2183cdc287714ba96aed3abd3318f";
/// The parameters of every operation on files. Clients of one vendor send `beta`, which has no function here.
const COMMON_PARAMETERS: [&str; 3] = ["workspace_id", "provider", "beta"];

/// Checks the query and returns the workspace of the caller.
///
/// # Errors
/// 400 for a parameter that is not supported, 403 for another workspace than the key's.
fn workspace(call: &Call<'_>, key: &InferenceKey, further: &[&str]) -> Result<WorkspaceId, ApiError> {
    let query = call.request.query_string();
    parameters::check_names(query, &[&COMMON_PARAMETERS, further].concat())?;
    if parameters::value(query, "provider")?.is_some() {
        return Err(ApiError::invalid("provider is not supported: the gateway keeps files itself"));
    }
    match parameters::workspace(query)? {
        Some(other) if other != key.workspace_id() => Err(ApiError::from_kind(domain::error::ErrorKind::Forbidden)
            .message("workspace_id is not the workspace of this key")),
        _ => Ok(key.workspace_id()),
    }
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

fn workspace_parameter() -> Parameter {
    let id = ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned())));
    operation::query("workspace_id", "The workspace of the key. Any other one is 403.", id)
}
