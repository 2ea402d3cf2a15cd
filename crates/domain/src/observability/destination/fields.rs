//! What a caller says of a destination.

/// Members of a destination as they came in, unchecked; `None` is not said. Holds secrets, so it is not shown.
#[derive(Default, Clone)]
pub struct DestinationFields {
    /// What people call it.
    pub name: Option<String>,
    /// The name of its kind.
    pub kind: Option<String>,
    /// The receiver's URL.
    pub url: Option<String>,
    /// Headers that are sent along, by name and value.
    pub headers: Option<Vec<(String, String)>>,
    /// What deliveries are signed with.
    pub secret: Option<String>,
    /// False while nothing is to be sent.
    pub enabled: Option<bool>,
    /// True where what was asked and answered stays here.
    pub privacy_mode: Option<bool>,
    /// Which share of sessions it hears of: the text of a number.
    pub sampling_rate: Option<String>,
    /// The keys whose requests it hears of, each by its hash or its id; `Some(None)` is all of them.
    pub api_key_hashes: Option<Option<Vec<String>>>,
}

impl DestinationFields {
    /// True where nothing is said at all.
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
