//! Views of keys.

use domain::api_key::{ApiKey, ApiKeyScope};
use domain::secret::ApiKeySecret;
use serde::Serialize;

use super::{LimitView, RejectionView, UsdNumber, time};

/// A created or rotated key; its secret is shown only once.
#[derive(Serialize)]
pub struct CreatedKey {
    /// The secret.
    pub key: String,
    /// The hash of the secret; it changes when the secret is rotated.
    pub hash: String,
    /// The id; it never changes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// True for a management key.
    pub management: bool,
}

impl CreatedKey {
    /// Creates a view of a key with its secret.
    pub fn new(key: &ApiKey, secret: &ApiKeySecret) -> Self {
        Self {
            key: secret.expose().to_owned(),
            hash: key.hash.to_string(),
            id: key.id.to_string(),
            name: key.name.as_str().to_owned(),
            workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
            management: key.scope == ApiKeyScope::Management,
        }
    }
}

/// A stored key.
#[derive(Serialize)]
pub struct KeyView {
    /// The id; it never changes.
    pub id: String,
    /// The hash of the current secret.
    pub hash: String,
    /// The masked secret.
    pub label: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// True for a management key.
    pub management: bool,
    /// True while its requests are rejected.
    pub disabled: bool,
    /// The expiry time.
    pub expires_at: Option<String>,
    /// The spending limit in USD.
    pub limit_usd: Option<UsdNumber>,
    /// The period of the limit.
    pub limit_reset: Option<&'static str>,
    /// Requests per minute; null is the configured default.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, in and out; null is the configured default.
    pub tokens_per_minute: Option<u32>,
    /// The assigned guardrail.
    pub guardrail_id: Option<String>,
    /// The creation time.
    pub created_at: String,
    /// The spend in USD: of the limit's current period, or of all time without one; for lists only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_usd: Option<UsdNumber>,
    /// The start of the newest recorded request; for lists only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Every limit of the key with its current usage; for a single key only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<LimitView>>,
    /// The newest counts of rejected requests, at most ten; for a single key only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejections: Option<Vec<RejectionView>>,
}

impl From<&ApiKey> for KeyView {
    fn from(key: &ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            hash: key.hash.to_string(),
            label: key.label.clone(),
            name: key.name.as_str().to_owned(),
            workspace_id: key.scope.workspace_id().map(|id| id.to_string()),
            management: key.scope == ApiKeyScope::Management,
            disabled: key.disabled,
            expires_at: key.expires_at.map(time),
            limit_usd: key.limit.map(|limit| UsdNumber(limit.amount)),
            limit_reset: key.limit.and_then(|limit| limit.reset).map(domain::budget::ResetInterval::as_str),
            requests_per_minute: key.rates.requests_per_minute,
            tokens_per_minute: key.rates.tokens_per_minute,
            guardrail_id: key.guardrail_id.map(|id| id.to_string()),
            created_at: time(key.created_at),
            spent_usd: None,
            last_used_at: None,
            limits: None,
            rejections: None,
        }
    }
}
