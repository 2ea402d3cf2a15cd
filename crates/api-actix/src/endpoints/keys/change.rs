//! Creates, changes and deletes keys.

use domain::api_key::{ApiKeyScope, CreatedKey, KeyRecord};
use domain::workspace::{ChooseWorkspaceError, choose_workspace};

use super::record::{CreateKeyRequest, SecretView, UpdateKeyRequest};
use super::{default_for, default_workspace, fields, name, record, respond, respond_secret, with_usage};
use crate::endpoints::prelude::*;

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
