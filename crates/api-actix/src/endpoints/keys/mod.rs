//! `…/keys`: the API keys. Management keys only.

mod fields;
pub(crate) mod record;

use std::sync::OnceLock;

use domain::api_key::{
    ApiKey, ApiKeyScope, ChangeApiKeyError, CreateApiKeyError, CreatedKey, InvalidKeyLimit, KeyFilter, KeyListFilter,
    KeyRecord, MAX_GRACE, OwnLimit,
};
use domain::naming::{NameError, ResourceName};
use domain::secret::ApiKeySecret;
use domain::workspace::{ChooseWorkspaceError, choose_workspace};
use wires::client::{ErrorLocation, check_names, read_members};

use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;
use record::{CreateKeyRequest, KeyView, LimitedKeyView, SecretView, UpdateKeyRequest};

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
    kind: Contended;
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
        ChangeApiKeyError::ResetWithoutLimit => located(plain, "limit_reset", &"requires a limit");
});

/// `GET …/keys`: lists keys.
pub(crate) const LIST: Route = Route::management(Get, "/keys", tags::KEYS, handler!(handle_list))
    .operation("listKeys", "List keys")
    .description("Newest first.")
    .query(&[
        WORKSPACE,
        Query::text("name", "Only keys of this name."),
        Query::text("external_user", "Only keys with this label."),
        Query::text("guardrail_id", "Only keys with this guardrail: its id, or its unique name."),
        Query::new("kind", "Management keys need an unrestricted key.", || {
            text().enum_values(Some(["inference", "management"])).default(Some(json!("inference")))
        }),
        Query::new("include_disabled", "False leaves out disabled keys.", || flag().default(Some(json!(true)))),
        Query::new("include_expired", "True adds expired keys.", || flag().default(Some(json!(false)))),
        OFFSET,
        FULL_LIMIT,
    ])
    .answer(|| BodySchema::page::<KeyView<'_>>("ApiKeyListResponse", "A page of keys."), "The keys");

async fn handle_list(call: &Call<'_>, by: &Authority) -> Outcome {
    let query = call.request.query_string();
    let is_management = match parameters::value(query, "kind")?.as_deref() {
        None | Some("inference") => false,
        Some("management") => true,
        Some(_) => return Err(ApiError::invalid("kind must be inference or management")),
    };
    let range = PageRange::parse(query, MAX_LIMIT)?;
    let guardrail_id = match parameters::value(query, "guardrail_id")? {
        Some(guardrail) => Some(call.routed().guardrails.get(by, &guardrail).await?.guardrail.id),
        None => None,
    };
    let keys = KeyFilter {
        is_management,
        name: parameters::value(query, "name")?,
        external_user: parameters::value(query, "external_user")?,
        guardrail_id,
        only_enabled: !parameters::switch(query, "include_disabled")?.unwrap_or(true),
        ..KeyFilter::default()
    };
    let workspace_id = workspaces::filter(call, by).await?;
    let include_expired = parameters::switch(query, "include_expired")?.unwrap_or(false);
    let filter = KeyListFilter { keys, workspace_id, include_expired };
    let (keys, total) = call.gateway.services.read_keys.list(by, filter, range.offset, range.limit).await?;
    let default = if is_management { default_workspace(call, by).await? } else { None };
    let data = keys.iter().map(|record| KeyView::new(record, default.as_deref())).collect();
    Ok(Page::respond(data, total))
}

/// `GET …/keys/{hash}`: reads a key.
pub(crate) const GET: Route = Route::management(Get, "/keys/{hash}", tags::KEYS, handler!(handle_get))
    .operation("getKey", "Get a key")
    .description("Management keys need an unrestricted key.")
    .answer(
        || BodySchema::data::<LimitedKeyView<'_>>("ApiKeyWithBudgetsResponse", "One key with its limits."),
        "The key, and every limit that applies to it",
    );

async fn handle_get(call: &Call<'_>, by: &Authority) -> Outcome {
    let found = call.gateway.services.read_keys.get(by, &name(call)?).await?;
    let default = default_for(call, by, &found.key).await?;
    let limits = own_limits(call, &found.key).await?;
    let view = LimitedKeyView::new(KeyView::new(&found, default.as_deref()), &limits);
    Ok(RecordResponse::data(StatusCode::OK, view).version(found.key.version()).respond())
}

/// Returns the limits of an inference key; a management key has none.
async fn own_limits(call: &Call<'_>, key: &ApiKey) -> Result<Vec<OwnLimit>, ApiError> {
    let Some(workspace_id) = key.scope.workspace_id() else { return Ok(Vec::new()) };
    let workspace = call.routed().guardrails.workspaces.find(workspace_id).await?;
    let default = workspace.and_then(|workspace| workspace.default_guardrail_id);
    let limits = call.gateway.services.get_own_key.limits_of((workspace_id, key.id), default, key.guardrail_id).await;
    Ok(limits?)
}

/// `POST …/keys`: creates a key.
pub(crate) const CREATE: Route = Route::management(Post, "/keys", tags::KEYS, handler!(handle_create, payload))
    .operation("createKey", "Create a key")
    .description(
        "Returns the secret, which is shown once. Members that published clients send and that have no function \
         here are accepted with their neutral value only.",
    )
    .query(&[Query::unique_name(
        "True rejects a name that another key of the workspace, or another management key, has.",
    )])
    .body(BodySchema::of::<CreateKeyRequest>)
    .headers(&[IDEMPOTENCY_KEY])
    .created(BodySchema::of::<SecretView<'_>>, "The key and its secret")
    .also(&[404]);

async fn handle_create(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let is_unique = parameters::unique_name(call.request.query_string())?;
    let body = call.read_json(payload).await?;
    let fields::NewKey { new, workspace } = fields::read_new(body.text()?)?;
    let default = if new.scope.management().is_some() { default_workspace(call, by).await? } else { None };
    let create = async |change: &Change<'_, _>| {
        let mut new = new.clone();
        // A management key has no workspace.
        if let Some(named) = workspace {
            by.check(Right::Keys)?;
            let routed = call.routed();
            let chosen = choose_workspace(&*routed.guardrails.workspaces, by, named).await.map_err(workspace_error)?;
            new.scope = ApiKeyScope::Inference(chosen.id);
        }
        let create = &call.gateway.services.create_key;
        let created =
            if is_unique { create.execute_unique(change, new).await } else { create.execute(change, new).await };
        Ok::<_, ApiError>(created?)
    };
    let render = |(key, secret): &CreatedKey| {
        respond_secret(StatusCode::CREATED, &KeyRecord::unused(key.clone()), default.as_deref(), secret)
    };
    call.post(by, body.text()?, create, render).await
}

fn workspace_error(error: ChooseWorkspaceError) -> ApiError {
    match error {
        ChooseWorkspaceError::Unknown => located(ApiError::not_found(), "workspace_id", &"workspace not found"),
        ChooseWorkspaceError::Required => ApiError::invalid(error.to_string()),
        ChooseWorkspaceError::Store(store) => store.into(),
    }
}

/// `PATCH …/keys/{hash}`: changes a key.
pub(crate) const UPDATE: Route = Route::management(Patch, "/keys/{hash}", tags::KEYS, handler!(handle_update, payload))
    .operation("updateKey", "Update a key")
    .description(
        "Changes the given members; null clears a member. A change is effective on every replica within a second.",
    )
    .body(BodySchema::of::<UpdateKeyRequest>)
    .headers(&[IF_MATCH])
    .answer(record::response, "The updated key");

async fn handle_update(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    by.check(Right::Keys)?;
    let body = call.read_json(payload).await?;
    let change = fields::read_change(body.text()?)?.ok_or_else(|| ApiError::invalid("No update fields provided"))?;
    let key = name(call)?;
    let changed = call.gateway.services.manage_keys.update(&call.change(by)?, &key, &change).await?;
    let default = default_for(call, by, &changed).await?;
    let changed = with_usage(call, changed).await;
    Ok(respond(StatusCode::OK, &changed, default.as_deref()).respond())
}

/// `DELETE …/keys/{hash}`: deletes a key.
pub(crate) const DELETE: Route = Route::management(Delete, "/keys/{hash}", tags::KEYS, handler!(handle_delete))
    .operation("deleteKey", "Delete a key")
    .description("The key is rejected on every replica within a second.")
    .headers(&[IF_MATCH])
    .answer(|| BodySchema::named::<Deleted>("ApiKeyDeletedResponse", "Confirms the deletion of a key."), "Deleted");

async fn handle_delete(call: &Call<'_>, by: &Authority) -> Outcome {
    call.gateway.services.manage_keys.delete(&call.change(by)?, &name(call)?).await?;
    Ok(Deleted::respond())
}

pub(crate) const ROTATE: Route =
    Route::management(Post, "/keys/{hash}/rotate", tags::KEYS, handler!(handle_rotate, payload))
        .operation("rotateKey", "Replace the secret of a key")
        .description(
            "Returns the new secret, which is shown once. The old secret is rejected at once by this process and \
         within a second by all others, or stays valid for `grace_seconds` as the same key; another rotation, \
         disabling and deletion end that time. Id, name, limits, usage and guardrail stay; `hash` changes. Every \
         call creates a new secret. Of concurrent calls for the same secret at most one succeeds.",
        )
        .body(BodySchema::of::<RotateRequest>)
        .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
        .answer(BodySchema::of::<SecretView<'_>>, "The key and its new secret")
        .complete(Operation::optional_body);

/// The body of a rotation.
#[derive(ToSchema)]
#[schema(as = RotateKeyRequest)]
#[expect(dead_code, reason = "the schema of a body that is read by hand")]
struct RotateRequest {
    /// The time that the old secret stays valid beside the new one. Default 0.
    #[schema(maximum = 604_800)]
    grace_seconds: Option<u32>,
}

/// Reads the grace period; no body is none.
fn read_grace(text: &str) -> Result<Duration, ApiError> {
    if text.trim().is_empty() {
        return Ok(Duration::ZERO);
    }
    let [seconds] = read_members(text, &["grace_seconds"])?;
    check_names(text, &["grace_seconds"], &[]).map_err(ApiError::invalid)?;
    let Some(seconds) = seconds else { return Ok(Duration::ZERO) };
    let seconds = seconds.get().parse().ok().filter(|seconds| *seconds <= MAX_GRACE.as_secs());
    let message = format!("grace_seconds: must be a whole number from 0 to {}", MAX_GRACE.as_secs());
    let seconds =
        seconds.ok_or_else(|| ApiError::invalid(message).location(ErrorLocation::Member("grace_seconds".to_owned())));
    Ok(Duration::from_secs(seconds?))
}

async fn handle_rotate(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_optional_json(payload).await?;
    let text = body.as_ref().map_or(Ok(""), JsonBody::text)?;
    let grace = read_grace(text)?;
    let (name, services) = (name(call)?, &call.gateway.services);
    // Read before the rotation: its response is rendered before it is stored.
    let found = OnceLock::new();
    let rotate = async |change: &Change<'_, _>| -> Result<CreatedKey, ApiError> {
        by.check(Right::Keys)?;
        let record = services.read_keys.get(by, &name).await?;
        let default = default_for(call, by, &record.key).await?;
        drop(found.set((record, default)));
        Ok(services.rotate_key.execute(change, &name, grace).await?)
    };
    let render = |(key, secret): &CreatedKey| {
        let (record, default) = found.get().cloned().unwrap_or_else(|| (KeyRecord::unused(key.clone()), None));
        let record = KeyRecord { key: key.clone(), ..record };
        respond_secret(StatusCode::OK, &record, default.as_deref(), secret)
    };
    call.post(by, text, rotate, render).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_a_number_of_seconds_up_to_a_week() {
        let grace = |text: &str| read_grace(text).map(|grace| grace.as_secs()).map_err(|error| error.text().to_owned());
        for (text, seconds) in [
            ("", 0),
            (" ", 0),
            ("{}", 0),
            (r#"{"grace_seconds":null}"#, 0),
            (r#"{"grace_seconds":0}"#, 0),
            (r#"{"grace_seconds":604800}"#, 604_800),
        ] {
            assert_eq!(grace(text), Ok(seconds), "{text}");
        }
        for value in ["604801", "-1", "1.5", "\"60\"", "true", "99999999999999999999"] {
            let expected = "grace_seconds: must be a whole number from 0 to 604800";
            assert_eq!(grace(&format!(r#"{{"grace_seconds":{value}}}"#)).unwrap_err(), expected, "{value}");
        }
        let unknown = grace(r#"{"grace_second":1}"#).unwrap_err();
        assert_eq!(unknown, r#"unknown member "grace_second"; the nearest known member is "grace_seconds""#);
        assert!(grace("[]").is_err() && grace("{").is_err());
    }
}
