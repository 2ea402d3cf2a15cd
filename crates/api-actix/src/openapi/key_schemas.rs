//! Schemas of API keys.
#![expect(dead_code, reason = "only their schemas are used")]

use utoipa::ToSchema;

/// A key and its new secret.
#[derive(ToSchema)]
pub(super) struct RotateKeyResponse {
    data: ApiKeyRecord,
    /// The secret. It is shown once.
    #[schema(pattern = "^sk-tg-v1-[0-9a-f]{64}$")]
    key: String,
}

/// A key without its secret.
#[derive(ToSchema)]
pub(super) struct ApiKeyRecord {
    /// Names the key for as long as it exists, whatever its secret is.
    #[schema(format = "uuid")]
    id: String,
    /// The SHA-256 of the present secret.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The masked secret.
    label: String,
    name: String,
    /// Null for a management key.
    #[schema(format = "uuid", required)]
    workspace_id: Option<String>,
    disabled: bool,
    /// USD.
    #[schema(required)]
    limit: Option<f64>,
    /// `daily`, `weekly` or `monthly`; null is never.
    #[schema(required)]
    limit_reset: Option<String>,
    #[schema(format = "uuid", required)]
    guardrail_id: Option<String>,
    #[schema(format = "date-time", required)]
    expires_at: Option<String>,
    #[schema(format = "date-time")]
    created_at: String,
}
