//! The fields of a destination as a caller sends them.

/// Unchecked fields of a destination; `None` is absent. Without `Debug`, because it holds secrets.
#[derive(Default, Clone)]
pub struct DestinationFields {
    /// The display name.
    pub name: Option<String>,
    /// The name of the kind.
    pub kind: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// Additional headers, by name and value.
    pub headers: Option<Vec<(String, String)>>,
    /// The signing secret.
    pub secret: Option<String>,
    /// False to pause deliveries.
    pub enabled: Option<bool>,
    /// True to leave inputs and answers out of traces.
    pub privacy_mode: Option<bool>,
    /// The share of sessions that is sent, as the text of a number.
    pub sampling_rate: Option<String>,
    /// The keys whose requests are sent, each by hash or id; `Some(None)` is all keys.
    pub api_key_hashes: Option<Option<Vec<String>>>,
}

impl DestinationFields {
    /// Returns true if no field is present.
    pub fn is_empty(&self) -> bool {
        let Self { name, kind, url, headers, secret, enabled, privacy_mode, sampling_rate, api_key_hashes } = self;
        let texts = [name.is_none(), kind.is_none(), url.is_none(), secret.is_none(), sampling_rate.is_none()];
        texts.into_iter().all(|none| none)
            && headers.is_none()
            && enabled.is_none()
            && privacy_mode.is_none()
            && api_key_hashes.is_none()
    }
}
