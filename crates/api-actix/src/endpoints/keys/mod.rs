//! `…/keys`: the API keys. Management keys only.

pub(crate) mod change;
mod fields;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod rotate;

use domain::api_key::{ApiKey, ChangeApiKeyError, CreateApiKeyError, InvalidKeyLimit, KeyRecord};
use domain::naming::{NameError, ResourceName};
use domain::secret::ApiKeySecret;
use domain::workspace::{ChooseWorkspaceError, choose_workspace};

use record::KeyView;

use crate::endpoints::prelude::*;

/// Returns the name in the path. A segment that is not valid UTF-8 names no key.
fn name(call: &Call<'_>) -> Result<ResourceName, ApiError> {
    Ok(ResourceName::new(call.id()?))
}

/// Returns the id of the default workspace if the caller sees management keys: clients decode no null in its place.
async fn default_workspace(call: &Call<'_>, by: &Authority) -> Result<Option<String>, ApiError> {
    let routed = call.routed();
    match choose_workspace(&*routed.guardrails.workspaces, by, None).await {
        Ok(workspace) => Ok(Some(workspace.id.to_string())),
        Err(ChooseWorkspaceError::Unknown | ChooseWorkspaceError::Required) => Ok(None),
        Err(ChooseWorkspaceError::Store(store)) => Err(store.into()),
    }
}

/// Returns the id of the default workspace for a management key, which has no workspace of its own.
async fn default_for(call: &Call<'_>, by: &Authority, key: &ApiKey) -> Result<Option<String>, ApiError> {
    if key.scope.management().is_some() { default_workspace(call, by).await } else { Ok(None) }
}

/// Renders a key with its entity tag.
fn respond(status: StatusCode, record: &KeyRecord, default: Option<&str>) -> RecordResponse {
    RecordResponse::data(status, KeyView::new(record, default)).version(record.key.version())
}

/// Renders a key and its secret.
fn respond_secret(
    status: StatusCode,
    record: &KeyRecord,
    default: Option<&str>,
    secret: &ApiKeySecret,
) -> RecordResponse {
    let body = KeyView::new(record, default).with_secret(secret);
    RecordResponse::json(status, &body).version(record.key.version()).secret_of(&record.key.id)
}

/// Adds the usage to a changed key. The change is stored, so a failure of the store is no error: the figures of usage
/// are then those of a new key.
async fn with_usage(call: &Call<'_>, key: ApiKey) -> KeyRecord {
    let unused = KeyRecord::unused(key.clone());
    call.gateway.services.read_keys.record(key).await.unwrap_or(unused)
}

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            NameError::Unknown => plain,
            NameError::Ambiguous(_) => {
                plain.message("Several resources have this name; use an id").metadata("ids", error.ids())
            }
        }
    }
}

/// Creates the error of invalid limits.
fn limits(plain: ApiError, error: InvalidKeyLimit) -> ApiError {
    match error {
        InvalidKeyLimit::NotPositive => located(plain, "limit", &error),
        InvalidKeyLimit::NoRate | InvalidKeyLimit::OfManagementKey => plain.message(error.to_string()),
    }
}

api_error!(CreateApiKeyError {
    pass: Restricted, Store;
    said: InvalidLabel, NameTaken;
    at "name": InvalidName;
    at "workspace_id": UnknownWorkspace;
    at "guardrail_id": UnknownGuardrail;
    at "expires_at": ExpiryInThePast;
    with |plain| CreateApiKeyError::InvalidLimit(invalid) => limits(plain, invalid);
});

api_error!(ChangeApiKeyError {
    pass: Restricted, Name, Store;
    said: PreconditionFailed, InvalidLabel, LastUnrestrictedKey;
    at "name": InvalidName;
    at "guardrail_id": UnknownGuardrail;
    at "management.workspaces": UnknownWorkspace;
    at "management": OtherKind;
    at "workspace_id": OtherWorkspace;
    at "expires_at": ExpiryInThePast;
    at "grace_seconds": GraceTooLong;
    with |plain|
        ChangeApiKeyError::InvalidLimit(invalid) => limits(plain, invalid),
        ChangeApiKeyError::ResetWithoutLimit => located(plain, "limit_reset", &"requires a limit"),
        ChangeApiKeyError::Contended => {
            plain.message("The key was changed concurrently by another call. Read it again and repeat the change.")
        };
});
