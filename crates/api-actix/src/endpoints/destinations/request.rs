//! The schemas of destinations in requests. `super::fields` reads the bodies and locates their errors.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use std::collections::HashMap;

use utoipa::ToSchema;

use super::record::DestinationType;

/// A trace destination to create.
#[derive(ToSchema)]
pub(super) struct DestinationRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
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

/// The connection settings of the destination.
#[derive(ToSchema)]
struct DestinationConfig {
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
struct DestinationConfigChange {
    #[schema(max_length = 2048)]
    url: Option<String>,
    headers: Option<HashMap<String, String>>,
    #[schema(min_length = 16, max_length = 256)]
    secret: Option<String>,
}

/// The selection of traces to send.
#[derive(ToSchema)]
struct DestinationChoices {
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
