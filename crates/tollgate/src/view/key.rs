//! Keys.

use domain::api_key::{ApiKey, ApiKeyScope, ApiKeySecret};
use serde::Serialize;

use super::{LimitView, UsdNumber, time};

/// A key that was created or rotated now: the only time that its secret is shown.
#[derive(Serialize)]
pub struct CreatedKey {
    /// The secret.
    pub key: String,
    /// The hash of the secret, which names the key until the secret is rotated.
    pub hash: String,
    /// The id, which names the key for as long as it exists.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// True for a management key.
    pub management: bool,
}

impl CreatedKey {
    /// Of a key and its secret.
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

/// A key as it is kept.
#[derive(Serialize)]
pub struct KeyView {
    /// The id, which names it for as long as it exists.
    pub id: String,
    /// The hash of its present secret.
    pub hash: String,
    /// The masked secret.
    pub label: String,
    /// Its name.
    pub name: String,
    /// Its workspace; null for a management key.
    pub workspace_id: Option<String>,
    /// True for a management key.
    pub management: bool,
    /// True while it is refused.
    pub disabled: bool,
    /// When it stops.
    pub expires_at: Option<String>,
    /// The most that it may spend, in USD.
    pub limit_usd: Option<UsdNumber>,
    /// When the limit starts anew.
    pub limit_reset: Option<&'static str>,
    /// Requests per minute; null follows the configuration.
    pub requests_per_minute: Option<u32>,
    /// Tokens per minute, in and out; null follows the configuration.
    pub tokens_per_minute: Option<u32>,
    /// The guardrail that it holds.
    pub guardrail_id: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// Every limit that it is under, as it stands; only where one key is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<LimitView>>,
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
            limits: None,
        }
    }
}
