//! The schemas of trace destinations.
#![expect(dead_code, reason = "only their schemas are used")]

use std::collections::HashMap;

use utoipa::ToSchema;

/// A trace destination to create.
#[derive(ToSchema)]
pub(super) struct DestinationRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    #[schema(rename = "type")]
    r#type: DestinationType,
    config: DestinationConfig,
    /// The workspace id. Default: the default workspace.
    #[schema(format = "uuid")]
    workspace_id: Option<String>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// A change to a destination, with at least one member.
#[derive(ToSchema)]
pub(super) struct DestinationChange {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    config: Option<DestinationConfigChange>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// The type of the destination.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub(super) enum DestinationType {
    OtelCollector,
    Webhook,
}

/// The connection settings of the destination.
#[derive(ToSchema)]
pub(super) struct DestinationConfig {
    /// An `http` or `https` URL without user and fragment. `/v1/traces` is appended to a collector URL without a path.
    #[schema(max_length = 2048)]
    url: String,
    /// At most 20 headers, by name; values are visible ASCII.
    headers: Option<HashMap<String, String>>,
    /// The signing secret of deliveries; required for a webhook.
    #[schema(min_length = 16, max_length = 256)]
    secret: Option<String>,
}

/// Changed connection settings. `headers` replaces all headers.
#[derive(ToSchema)]
pub(super) struct DestinationConfigChange {
    #[schema(max_length = 2048)]
    url: Option<String>,
    headers: Option<HashMap<String, String>>,
    #[schema(min_length = 16, max_length = 256)]
    secret: Option<String>,
}

/// The connection settings of a stored destination. No answer has their secrets.
#[derive(ToSchema)]
pub(super) struct StoredDestinationConfig {
    /// The URL; the values of a query are masked.
    url: String,
    /// The names of the headers, with masked values.
    headers: HashMap<String, MaskedSecret>,
    /// Present if a signing secret is stored; masked.
    #[schema(nullable = false)]
    secret: Option<MaskedSecret>,
}

/// The mask in place of a secret.
#[derive(ToSchema)]
#[schema(pattern = "^[*]{4,}$")]
pub(super) struct MaskedSecret(String);

/// The selection of traces to send.
#[derive(ToSchema)]
pub(super) struct DestinationChoices {
    /// Default true. While false, nothing is sent and pending deliveries are kept.
    enabled: Option<bool>,
    /// Default true: questions, state, answers, `session_id`, `user` and `trace` are left out.
    privacy_mode: Option<bool>,
    /// The share of sessions to send, with at most four decimals. Default 1.
    #[schema(minimum = 0.0001, maximum = 1.0)]
    sampling_rate: Option<f64>,
    /// The keys whose requests are sent, by hash or id: active inference keys of the workspace. Null means all keys.
    #[schema(min_items = 1, max_items = 100)]
    api_key_hashes: Option<Vec<String>>,
}

/// A trace destination.
#[derive(ToSchema)]
pub(super) struct DestinationRecord {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    #[schema(rename = "type")]
    r#type: DestinationType,
    config: StoredDestinationConfig,
    enabled: bool,
    privacy_mode: bool,
    sampling_rate: f64,
    /// The current hash of each key.
    #[schema(required)]
    api_key_hashes: Option<Vec<String>>,
    #[schema(format = "uuid")]
    workspace_id: String,
    #[schema(format = "date-time")]
    created_at: String,
    #[schema(format = "date-time", required)]
    updated_at: Option<String>,
}

/// One trace destination.
#[derive(ToSchema)]
pub(super) struct DestinationResponse {
    data: DestinationRecord,
}

/// A list of trace destinations.
#[derive(ToSchema)]
pub(super) struct DestinationListResponse {
    data: Vec<DestinationRecord>,
    total_count: u64,
}

/// Confirms the deletion.
#[derive(ToSchema)]
pub(super) struct DestinationDeletedResponse {
    deleted: bool,
}
