//! The JSON view of a destination, with masked secrets.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, SecondsFormat, Utc};
use domain::api_key::ApiKeyHash;
use domain::ids::ApiKeyId;
use domain::json::Json;
use domain::observability::{Destination, MASK};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::http::raw_json::opaque;

/// A destination record.
#[derive(Debug, Serialize)]
pub struct DestinationView {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The name of the destination type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    config: ConfigView,
    /// False while nothing is sent.
    pub enabled: bool,
    /// True if request and response content is not sent.
    pub privacy_mode: bool,
    sampling_rate: Box<RawValue>,
    api_key_hashes: Option<Vec<String>>,
    /// The workspace id.
    pub workspace_id: String,
    created_at: String,
    updated_at: Option<String>,
}

#[derive(Debug, Serialize)]
struct ConfigView {
    url: String,
    headers: BTreeMap<String, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'static str>,
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
            kind: destination.kind.as_str(),
            config: ConfigView {
                url: destination.shown_url(),
                headers: destination.headers.iter().map(|(name, _)| (name.clone(), MASK)).collect(),
                secret: destination.signing_secret.as_ref().map(|_| MASK),
            },
            enabled: destination.enabled,
            privacy_mode: destination.privacy_mode,
            sampling_rate: opaque(&rate),
            api_key_hashes: keys.map(|ids| ids.iter().map(name).collect()),
            workspace_id: destination.workspace_id.to_string(),
            created_at: time(destination.created_at),
            updated_at: destination.updated_at.map(time),
        }
    }

    /// Returns the masked URL.
    pub fn url(&self) -> &str {
        &self.config.url
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
