//! The schemas of API keys.
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
    /// The permanent id of the key. It does not change with the secret.
    #[schema(format = "uuid")]
    id: String,
    /// The SHA-256 hash of the current secret, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The masked secret.
    label: String,
    name: String,
    /// The workspace id; null for a management key.
    #[schema(format = "uuid", required)]
    workspace_id: Option<String>,
    disabled: bool,
    /// The spending limit in USD; null means unlimited.
    #[schema(required)]
    limit: Option<f64>,
    /// The reset period of the limit: `daily`, `weekly` or `monthly`; null means never.
    #[schema(required)]
    limit_reset: Option<String>,
    #[schema(format = "uuid", required)]
    guardrail_id: Option<String>,
    #[schema(format = "date-time", required)]
    expires_at: Option<String>,
    #[schema(format = "date-time")]
    created_at: String,
}
