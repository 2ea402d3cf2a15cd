//! Validation of a destination's fields.

use super::{DestinationFields, InvalidDestination, MASK, headers, sampling_rate, url};
use crate::api_key::KeyReference;
use crate::observability::Destination;
use crate::secret::SecretString;

/// The most headers of a destination.
const MAX_HEADERS: usize = 20;
/// The most keys of a destination.
const MAX_KEYS: usize = 100;

impl DestinationFields {
    /// Returns `base` with the given fields applied. Keys are only checked here; [`super::DestinationPorts::with_keys`]
    /// looks them up. A masked secret keeps the value of `base`, but never moves to another origin.
    pub(super) fn apply(&self, base: &Destination) -> Result<Destination, InvalidDestination> {
        let mut changed = base.clone();
        if let Some(name) = &self.name {
            changed.name = checked_name(name)?;
        }
        if let Some(kind) = &self.kind
            && kind != changed.kind.as_str()
        {
            return Err(InvalidDestination::new("type", "cannot be changed; create another destination"));
        }
        if let Some(given) = &self.url
            && *given != changed.shown_url()
        {
            let whole = url::unmasked(given, &changed.url).and_then(|whole| url::checked(&whole));
            changed.url = whole.map_err(|fault| InvalidDestination::new("config.url", fault))?;
        }
        if let Some(given) = &self.headers {
            changed.headers = checked_headers(given, &changed.headers)?;
        }
        if let Some(secret) = &self.secret
            && !(secret == MASK && changed.signing_secret.is_some())
        {
            changed.signing_secret = Some(checked_secret(secret)?);
        }
        if let Some(rate) = &self.sampling_rate {
            let fault = || InvalidDestination::new("sampling_rate", "must be 0.0001 to 1 with at most four decimals");
            changed.sampling = sampling_rate::parse(rate).ok_or_else(fault)?;
        }
        if let Some(names) = &self.api_key_hashes {
            names.as_deref().map(key_names).transpose()?;
        }
        changed.enabled = self.enabled.unwrap_or(changed.enabled);
        changed.privacy_mode = self.privacy_mode.unwrap_or(changed.privacy_mode);
        self.check_secrets_on_origin_change(base, &changed)?;
        Ok(changed)
    }
}

fn checked_name(name: &str) -> Result<String, InvalidDestination> {
    let length = name.chars().count();
    if (1..=100).contains(&length) && !name.trim().is_empty() && !name.chars().any(char::is_control) {
        return Ok(name.to_owned());
    }
    Err(InvalidDestination::new(
        "name",
        "must have 1 to 100 characters, not all of them blank, and no control characters",
    ))
}

/// Returns the headers sorted by name, which is the order in which they are shown.
fn checked_headers(
    given: &[(String, String)],
    stored: &[(String, SecretString)],
) -> Result<Vec<(String, SecretString)>, InvalidDestination> {
    if given.len() > MAX_HEADERS {
        return Err(InvalidDestination::new("config.headers", format!("must have at most {MAX_HEADERS} members")));
    }
    let mut checked: Vec<(String, SecretString)> = Vec::with_capacity(given.len());
    for (number, (name, value)) in given.iter().enumerate() {
        // An invalid name is not repeated: it may be a whole line with its secret.
        let path = || format!("config.headers, member {},", number + 1);
        let (name, value) = headers::checked(name, value).map_err(|fault| InvalidDestination::new(path(), fault))?;
        if checked.iter().any(|(other, _)| *other == name) {
            return Err(InvalidDestination::new(path(), "duplicates an earlier member"));
        }
        let kept = stored.iter().find(|(other, _)| value == MASK && *other == name);
        let value = match kept {
            Some((_, kept)) => kept.clone(),
            None if value == MASK => {
                return Err(InvalidDestination::new(path(), "has a masked value, but no value is stored"));
            }
            None => SecretString::new(value),
        };
        checked.push((name, value));
    }
    checked.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(checked)
}

fn checked_secret(secret: &str) -> Result<SecretString, InvalidDestination> {
    let fits = (16..=256).contains(&secret.chars().count()) && !secret.chars().any(char::is_control);
    if fits {
        return Ok(SecretString::new(secret));
    }
    Err(InvalidDestination::new("config.secret", "must have 16 to 256 characters and no control characters"))
}

/// Parses references to keys.
pub(super) fn key_names(given: &[String]) -> Result<Vec<KeyReference>, InvalidDestination> {
    if given.is_empty() || given.len() > MAX_KEYS {
        let fault = format!("must have 1 to {MAX_KEYS} elements; null is all keys");
        return Err(InvalidDestination::new("api_key_hashes", fault));
    }
    let parse = |(number, text): (usize, &String)| {
        let fault = "must be the hash of a key (64 lower-case hex digits) or its id (a UUID)";
        text.parse().map_err(|_| InvalidDestination::new(format!("api_key_hashes[{number}]"), fault))
    };
    given.iter().enumerate().map(parse).collect()
}
