//! `POST /keys/{hash}/rotate`: replaces the secret of a key.

use domain::api_key::{ApiKey, ChangeApiKeyError, KeyReference};
use domain::secret::ApiKeySecret;
use serde_json::value::RawValue;

use crate::endpoints::prelude::*;
use crate::http::response::{ResetInterval, time, usd};

pub(crate) const ROUTE: Route = Route::management(
    Method::Post,
    "/keys/{hash}/rotate",
    |call, key, _| Box::pin(handle(call, key)),
    tags::KEYS,
    describe,
);

fn describe() -> Operation {
    Operation::new("rotateKey", "Replace the secret of a key")
        .description(
            "Returns the new secret, which is shown once. The old secret is rejected at once by this process and \
             within a second by all others. Id, name, limits, usage and guardrail stay; `hash` changes. Every call \
             creates a new secret. Of concurrent calls for the same secret at most one succeeds. Needs a management \
             key.",
        )
        .parameter(path("hash", "The key's hash or id. After a rotation the old hash is unknown."))
        .answer(BodySchema::of::<RotatedView<'_>>(), "The key and its new secret", &[404, 409])
}

impl From<ChangeApiKeyError> for ApiError {
    fn from(error: ChangeApiKeyError) -> Self {
        let plain = Self::from_kind(error.kind());
        match error {
            ChangeApiKeyError::Restricted(restricted) => restricted.into(),
            ChangeApiKeyError::UnknownKey(_) => plain,
            ChangeApiKeyError::Contended => {
                plain.message("The key was rotated concurrently by another call, which returned the new secret.")
            }
            ChangeApiKeyError::Store(store) => Self::store(store),
            other => plain.message(other.to_string()),
        }
    }
}

/// A key and its new secret.
#[derive(Serialize, ToSchema)]
#[schema(as = RotateKeyResponse)]
struct RotatedView<'a> {
    data: KeyView<'a>,
    /// The secret. It is shown once.
    #[schema(pattern = "^sk-tg-v1-[0-9a-f]{64}$")]
    key: &'a str,
}

/// A key without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyRecord)]
struct KeyView<'a> {
    /// The permanent id of the key. It does not change with the secret.
    #[schema(format = "uuid")]
    id: String,
    /// The SHA-256 hash of the current secret, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The masked secret.
    label: &'a str,
    name: &'a str,
    /// The workspace id; null for a management key.
    #[schema(required, format = "uuid")]
    workspace_id: Option<String>,
    disabled: bool,
    /// The spending limit in USD; null means unlimited.
    #[schema(required, value_type = Option<f64>)]
    limit: Option<Box<RawValue>>,
    /// The reset period of the limit; null means never.
    #[schema(required, value_type = Option<ResetInterval>)]
    limit_reset: Option<&'static str>,
    #[schema(required, format = "uuid")]
    guardrail_id: Option<String>,
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

impl<'a> RotatedView<'a> {
    fn new(key: &'a ApiKey, secret: &'a ApiKeySecret) -> Self {
        let data = KeyView {
            id: key.id.to_string(),
            hash: key.hash.to_string(),
            label: &key.label,
            name: key.name.as_str(),
            workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
            disabled: key.disabled,
            limit: key.limit.map(|limit| usd(limit.amount)),
            limit_reset: key.limit.and_then(|limit| limit.reset).map(domain::budget::ResetInterval::as_str),
            guardrail_id: key.guardrail_id.map(|id| id.to_string()),
            expires_at: key.expires_at.map(time),
            created_at: time(key.created_at),
        };
        Self { data, key: secret.expose() }
    }
}

async fn handle(call: &Call<'_>, by: &Authority) -> Outcome {
    // A path segment that is neither a hash nor an id names no key.
    let name = parameters::segment(call.parameters[0]).and_then(|text| text.parse::<KeyReference>().ok());
    let name = name.ok_or_else(ApiError::not_found)?;
    let (key, secret) = call.gateway.services.rotate_key.execute(by, &name).await?;
    Ok(RecordResponse::json(StatusCode::OK, &RotatedView::new(&key, &secret)).secret_of(&key.id).respond())
}
