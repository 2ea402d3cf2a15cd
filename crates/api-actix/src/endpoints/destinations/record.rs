//! A destination as JSON: its view with masked secrets, and the schemas of requests, which `fields.rs` reads.
#![expect(dead_code, reason = "the schemas of bodies that are read by hand")]

use std::collections::{BTreeMap, HashMap};

use domain::ids::ApiKeyId;
use domain::observability::{Destination, DestinationKind, MASK};
use domain::secret::ApiKeyHash;

use crate::endpoints::prelude::*;

/// A trace destination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DestinationRecord)]
#[expect(clippy::struct_excessive_bools, reason = "members that published clients decode")]
pub struct DestinationView {
    /// The id.
    pub id: Uuid,
    /// The name.
    pub name: String,
    #[schema(value_type = DestinationType)]
    r#type: &'static str,
    config: ConfigView,
    /// False while nothing is sent.
    pub enabled: bool,
    privacy_mode: bool,
    sampling_rate: Decimal,
    /// The current hash of each key.
    #[schema(required)]
    api_key_hashes: Option<Vec<String>>,
    workspace_id: Uuid,
    created_at: DateTime,
    /// The time of the last change, or of the creation.
    updated_at: DateTime,
    /// True if deliveries are signed.
    signed: bool,
    /// Always false.
    broadcast_generation_cost: bool,
    /// Always false.
    broadcast_generation_cost_allocation: bool,
    /// Always false.
    broadcast_generation_identity: bool,
    /// Always false.
    broadcast_generation_request_context: bool,
    /// Always null.
    #[schema(required, value_type = Option<Object>)]
    filter_rules: Option<()>,
    /// Always `global`.
    regions: [&'static str; 1],
}

/// The type of the destination.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
enum DestinationType {
    OtelCollector,
    Webhook,
}

/// The connection settings of a stored destination. No answer has their secrets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredDestinationConfig)]
struct ConfigView {
    /// The URL; the values of a query are masked.
    url: String,
    /// The same as `url`, for a collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    endpoint: Option<String>,
    /// The names of the headers, with masked values.
    headers: BTreeMap<String, MaskedSecret>,
    /// Present if a signing secret is stored; masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret: Option<MaskedSecret>,
}

/// The mask in place of a secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(pattern = "^[*]{4,}$")]
struct MaskedSecret(&'static str);

/// Returns the schema of one destination.
pub(super) fn response() -> BodySchema {
    BodySchema::data::<DestinationView>("DestinationResponse", "One trace destination.")
}

/// Renders one destination with its entity tag.
pub(super) fn respond(
    status: StatusCode,
    destination: &Destination,
    hashes: &HashMap<ApiKeyId, ApiKeyHash>,
) -> RecordResponse {
    RecordResponse::data(status, DestinationView::new(destination, hashes)).version(destination.version())
}

impl DestinationView {
    /// Builds the view of a destination. Header values, the secret and the URL query are masked. A key without a hash
    /// in `hashes` is shown by its id, which requests accept in place of the hash.
    pub fn new(destination: &Destination, hashes: &HashMap<ApiKeyId, ApiKeyHash>) -> Self {
        let name = |id: &ApiKeyId| hashes.get(id).map_or_else(|| id.to_string(), ToString::to_string);
        let keys = destination.api_key_ids.as_ref();
        let rate = Json::parse(&destination.sampling_rate()).unwrap_or_else(|_| Json::string(""));
        Self {
            id: destination.id.to_string(),
            name: destination.name.clone(),
            r#type: destination.kind.as_str(),
            config: ConfigView {
                url: destination.shown_url(),
                endpoint: (destination.kind == DestinationKind::OtelCollector).then(|| destination.shown_url()),
                headers: destination.headers.iter().map(|(name, _)| (name.clone(), MaskedSecret(MASK))).collect(),
                secret: destination.signing_secret.as_ref().map(|_| MaskedSecret(MASK)),
            },
            enabled: destination.enabled,
            privacy_mode: destination.privacy_mode,
            sampling_rate: opaque(&rate),
            api_key_hashes: keys.map(|ids| ids.iter().map(name).collect()),
            workspace_id: destination.workspace_id.to_string(),
            created_at: time(destination.created_at),
            updated_at: time(destination.updated_at.unwrap_or(destination.created_at)),
            signed: destination.signing_secret.is_some(),
            broadcast_generation_cost: false,
            broadcast_generation_cost_allocation: false,
            broadcast_generation_identity: false,
            broadcast_generation_request_context: false,
            filter_rules: None,
            regions: ["global"],
        }
    }

    /// Returns the masked URL.
    pub fn url(&self) -> &str {
        &self.config.url
    }

    /// Returns the type of the destination.
    pub fn kind(&self) -> &'static str {
        self.r#type
    }
}

/// A trace destination to create.
#[derive(ToSchema)]
pub(super) struct DestinationRequest {
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    r#type: DestinationType,
    config: DestinationConfig,
    /// The workspace id. Default: the default workspace.
    workspace_id: Option<Uuid>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// A change to a destination, with at least one member.
#[derive(ToSchema)]
pub(super) struct DestinationChange {
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    name: Option<String>,
    #[schema(nullable = false)]
    config: Option<DestinationConfig>,
    #[serde(flatten)]
    choices: DestinationChoices,
}

/// The connection settings of the destination. A change replaces them as a whole, except for an absent `secret`.
#[derive(ToSchema)]
struct DestinationConfig {
    /// An `http` or `https` URL without user and fragment. `/v1/traces` is appended to a collector URL without a path.
    #[schema(max_length = 2048)]
    url: String,
    /// At most 20 headers, by name; values are visible ASCII.
    headers: Option<HashMap<String, String>>,
    /// The signing secret of deliveries. Without one they are unsigned. In a change null clears it, absence keeps it.
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

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn types_are_written_with_the_names_of_kinds() {
        let kinds = [DestinationKind::OtelCollector, DestinationKind::Webhook];
        let schema = serde_json::to_value(DestinationType::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(kinds.map(DestinationKind::as_str)));
    }
}
