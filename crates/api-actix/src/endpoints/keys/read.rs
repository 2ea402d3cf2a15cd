//! Reads keys.

use domain::api_key::{ApiKey, KeyFilter, KeyListFilter, OwnLimit};

use super::record::{KeyView, LimitedKeyView};
use super::{default_for, default_workspace, name};
use crate::endpoints::prelude::*;
use crate::endpoints::workspaces;

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
    let page = call.gateway.services.read_keys.list(by, filter, range.offset, range.limit).await?;
    let default = if is_management { default_workspace(call, by).await? } else { None };
    let data = page.keys.iter().map(|record| KeyView::new(record, default.as_deref())).collect();
    Ok(Page::respond(data, page.total))
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
    let limits = limits(call, &found.key).await?;
    let view = LimitedKeyView::new(KeyView::new(&found, default.as_deref()), &limits);
    Ok(RecordResponse::data(StatusCode::OK, view).version(found.key.version()).respond())
}

/// Returns the limits of an inference key; a management key has none.
async fn limits(call: &Call<'_>, key: &ApiKey) -> Result<Vec<OwnLimit>, ApiError> {
    let Some(workspace_id) = key.scope.workspace_id() else { return Ok(Vec::new()) };
    let workspace = call.routed().guardrails.workspaces.find(workspace_id).await?;
    let default = workspace.and_then(|workspace| workspace.default_guardrail_id);
    let limits = call.gateway.services.get_own_key.limits_of((workspace_id, key.id), default, key.guardrail_id).await;
    Ok(limits?)
}
