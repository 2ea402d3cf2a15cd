//! The bodies of destinations, as the description shows them.
#![expect(dead_code, reason = "only their schemas are used")]

use std::collections::HashMap;

use utoipa::ToSchema;

/// A destination to be made.
#[derive(ToSchema)]
pub(super) struct DestinationRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    #[schema(rename = "type")]
    r#type: DestinationType,
    config: DestinationConfig,
    /// The default workspace where none is named.
    #[schema(format = "uuid")]
    workspace_id: Option<String>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// A change to a destination: at least one member.
#[derive(ToSchema)]
pub(super) struct DestinationChange {
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    config: Option<DestinationConfigChange>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// What kind of receiver it is.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub(super) enum DestinationType {
    OtelCollector,
    Webhook,
}

/// How the receiver is reached.
#[derive(ToSchema)]
pub(super) struct DestinationConfig {
    /// `http` or `https`, without user and fragment. `/v1/traces` is added to a collector's URL that has no path.
    #[schema(max_length = 2048)]
    url: String,
    /// At most 20, by name; values are visible ASCII.
    headers: Option<HashMap<String, String>>,
    /// What deliveries are signed with; a webhook needs one.
    #[schema(min_length = 16, max_length = 256)]
    secret: Option<String>,
}

/// What is different about how the receiver is reached; headers are replaced as a whole.
#[derive(ToSchema)]
pub(super) struct DestinationConfigChange {
    #[schema(max_length = 2048)]
    url: Option<String>,
    headers: Option<HashMap<String, String>>,
    #[schema(min_length = 16, max_length = 256)]
    secret: Option<String>,
}

/// What a destination hears of.
#[derive(ToSchema)]
pub(super) struct DestinationChoices {
    /// True unless said otherwise; while false, nothing is sent and what waits is kept.
    enabled: Option<bool>,
    /// True: nothing of questions, state, answers, `session_id`, `user` and `trace` is sent. Default false.
    privacy_mode: Option<bool>,
    /// Which share of sessions it hears of, with at most four decimals; 1 unless said otherwise.
    #[schema(minimum = 0.0001, maximum = 1.0)]
    sampling_rate: Option<f64>,
    /// The keys whose requests it hears of, by hash or by id: live inference keys of the workspace. Null is all of them.
    #[schema(min_items = 1, max_items = 100)]
    api_key_hashes: Option<Vec<String>>,
}

/// A destination.
#[derive(ToSchema)]
pub(super) struct DestinationRecord {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    #[schema(rename = "type")]
    r#type: DestinationType,
    /// Secrets are masked.
    config: DestinationConfig,
    enabled: bool,
    privacy_mode: bool,
    sampling_rate: f64,
    /// The present hash of each key.
    #[schema(required)]
    api_key_hashes: Option<Vec<String>>,
    #[schema(format = "uuid")]
    workspace_id: String,
    #[schema(format = "date-time")]
    created_at: String,
    #[schema(format = "date-time", required)]
    updated_at: Option<String>,
}

/// One destination.
#[derive(ToSchema)]
pub(super) struct DestinationResponse {
    data: DestinationRecord,
}

/// Destinations.
#[derive(ToSchema)]
pub(super) struct DestinationListResponse {
    data: Vec<DestinationRecord>,
    total_count: u64,
}

/// It is gone.
#[derive(ToSchema)]
pub(super) struct DestinationDeletedResponse {
    deleted: bool,
}
