//! The fields of a destination as a caller sends them, their validation and their audit view.

use super::errors::InvalidDestination;
use super::url::{MASK, Origin, checked_url, parse_sampling_rate, unmasked_url};
use crate::api_key::KeyReference;
use crate::audit::{Actor, AuditDraft};
use crate::edit::Edit;
use crate::ids::{DestinationId, WorkspaceId};
use crate::json::{Json, ObjectWriter};
use crate::observability::{Destination, NamedDestination};
use crate::secret::SecretString;

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
    pub secret: Edit<String>,
    /// False to pause deliveries.
    pub enabled: Option<bool>,
    /// True to leave inputs and answers out of traces.
    pub privacy_mode: Option<bool>,
    /// The share of sessions that is sent, as the text of a number.
    pub sampling_rate: Option<String>,
    /// The keys whose requests are sent, each by hash or id; cleared, all keys.
    pub api_key_hashes: Edit<Vec<String>>,
    /// The workspace that the caller of a change believes the destination to have. A destination does not move.
    pub workspace_id: Option<WorkspaceId>,
}

impl DestinationFields {
    /// Returns true if no field that can change is present.
    pub fn is_empty(&self) -> bool {
        let Self { name, kind, url, headers, secret, enabled, privacy_mode, sampling_rate, api_key_hashes, .. } = self;
        let texts = [name.is_none(), kind.is_none(), url.is_none(), secret.is_keep(), sampling_rate.is_none()];
        texts.into_iter().all(|none| none)
            && headers.is_none()
            && enabled.is_none()
            && privacy_mode.is_none()
            && api_key_hashes.is_keep()
    }
}

/// The most headers of a destination.
const MAX_HEADERS: usize = 20;
/// The most keys of a destination.
const MAX_KEYS: usize = 100;

impl DestinationFields {
    /// Returns `base` with the given fields applied. Keys are only checked here; [`super::ManageDestinations::with_keys`]
    /// looks them up. A masked secret keeps the value of `base`, but never moves to another origin.
    pub(super) fn apply(&self, base: &Destination) -> Result<Destination, InvalidDestination> {
        let mut changed = base.clone();
        if self.workspace_id.is_some_and(|named| named != base.workspace_id) {
            let fault = "cannot change; create a destination in the other workspace";
            return Err(InvalidDestination::new("workspace_id", fault));
        }
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
            let whole = unmasked_url(given, &changed.url).and_then(|whole| checked_url(&whole));
            changed.url = whole.map_err(|fault| InvalidDestination::new("config.url", fault))?;
        }
        if let Some(given) = &self.headers {
            changed.headers = checked_headers(given, &changed.headers)?;
        }
        match &self.secret {
            Edit::Keep => {}
            Edit::Clear => changed.signing_secret = None,
            Edit::Set(secret) if secret == MASK && changed.signing_secret.is_some() => {}
            Edit::Set(secret) => changed.signing_secret = Some(checked_secret(secret)?),
        }
        if let Some(rate) = &self.sampling_rate {
            let fault = || InvalidDestination::new("sampling_rate", "must be 0.0001 to 1 with at most four decimals");
            changed.sampling = parse_sampling_rate(rate).ok_or_else(fault)?;
        }
        if let Edit::Set(names) = &self.api_key_hashes {
            key_names(names)?;
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
        let (name, value) = checked_header(name, value).map_err(|fault| InvalidDestination::new(path(), fault))?;
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

impl DestinationFields {
    /// Checks that a change of scheme, host or port repeats every secret. A caller who may change a destination never
    /// sees its secrets, and must not redirect them to another server either.
    pub(super) fn check_secrets_on_origin_change(
        &self,
        before: &Destination,
        after: &Destination,
    ) -> Result<(), InvalidDestination> {
        // An unknown origin equals no other origin.
        if Origin::of(&before.url).is_some_and(|origin| Origin::of(&after.url) == Some(origin)) {
            return Ok(());
        }
        let mut kept = Vec::new();
        if self.url.as_deref().and_then(|url| url.split_once('?')).is_some_and(|(_, query)| query == MASK) {
            kept.push("the query of config.url".to_owned());
        }
        let stored = after.headers.iter().map(|(name, _)| name).filter(|name| !self.gives_header(name));
        kept.extend(stored.map(|name| format!("config.headers.{name}")));
        let gives_secret = matches!(&self.secret, Edit::Set(secret) if secret != MASK);
        if after.signing_secret.is_some() && !gives_secret {
            kept.push("config.secret".to_owned());
        }
        if kept.is_empty() {
            return Ok(());
        }
        let fault = format!(
            "has another scheme, host or port, to which stored secrets are not sent; include in the same request: {}",
            kept.join(", ")
        );
        Err(InvalidDestination::new("config.url", fault))
    }

    /// Returns true if the header is given with an unmasked value.
    fn gives_header(&self, name: &str) -> bool {
        let is_it = |(given, value): &(String, String)| {
            checked_header(given, value).is_ok_and(|(given, value)| given == name && value != MASK)
        };
        self.headers.iter().flatten().any(is_it)
    }
}

/// Reserved headers: hop-by-hop headers, and headers that every delivery sets.
const RESERVED_NAMES: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-test-connection",
];
/// Reserved prefixes of header names.
const RESERVED_PREFIXES: [&str; 2] = ["proxy-", "x-tollgate-"];
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The longest value, in bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// Validates an additional header. Returns the name in lower case and the trimmed value.
///
/// # Errors
/// The violation, as the rest of a sentence, without the value, which may be secret.
pub fn checked_header(name: &str, value: &str) -> Result<(String, String), String> {
    let lower = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if lower.is_empty() || lower.len() > MAX_NAME_BYTES || !lower.bytes().all(token) {
        return Err(format!("must be the name of a header, of 1 to {MAX_NAME_BYTES} characters"));
    }
    if RESERVED_NAMES.contains(&lower.as_str()) || RESERVED_PREFIXES.iter().any(|taken| lower.starts_with(taken)) {
        return Err("is set by the connection or by every delivery; leave it out".to_owned());
    }
    let value = value.trim_matches(' ');
    let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if value.is_empty() || value.len() > MAX_VALUE_BYTES || !value.bytes().all(visible) {
        return Err(format!("must have a value of 1 to {MAX_VALUE_BYTES} visible ASCII characters"));
    }
    Ok((lower, value.to_owned()))
}

/// Returns the audit entry of a change; `before` is `None` for a creation, `after` for a deletion.
pub(super) fn audited(
    actor: &Actor,
    action: &'static str,
    id: DestinationId,
    before: Option<&Destination>,
    after: Option<&Destination>,
) -> AuditDraft {
    let side = |destination: Option<&Destination>| destination.map(view);
    let (old, new) = (side(before), side(after));
    let mut details =
        ObjectWriter::new().maybe("before", old.as_ref().map(Json::text)).maybe("after", new.as_ref().map(Json::text));
    if let (Some(before), Some(after)) = (before, after) {
        // Members that are not shown may differ as well.
        let changed =
            before.url != after.url || before.headers != after.headers || before.signing_secret != after.signing_secret;
        details = details.shown("config_changed", changed);
    }
    let details = details.finish();
    AuditDraft::done(actor, action, format!("destination {id}"), details)
}

/// Returns the audit entry of the deletion of a destination whose settings cannot be read.
pub(super) fn audited_unreadable(actor: &Actor, destination: &NamedDestination) -> AuditDraft {
    let before = ObjectWriter::new()
        .text("workspace_id", destination.workspace_id.to_string())
        .text("name", &destination.name)
        .finish();
    let details = ObjectWriter::new().json("before", before.text()).finish();
    AuditDraft::done(actor, "destination.delete", format!("destination {}", destination.id), details)
}

fn view(destination: &Destination) -> Json {
    let view = ObjectWriter::new()
        .text("workspace_id", destination.workspace_id.to_string())
        .text("name", &destination.name)
        .text("type", destination.kind.as_str())
        .text("origin", destination.origin())
        .texts("headers", destination.headers.iter().map(|(name, _)| name))
        .shown("signed", destination.signing_secret.is_some())
        .shown("enabled", destination.enabled)
        .shown("privacy_mode", destination.privacy_mode)
        .shown("sampling_rate", destination.sampling_rate());
    match &destination.api_key_ids {
        Some(ids) => view.texts("api_key_ids", ids.iter().map(ToString::to_string)),
        None => view.json("api_key_ids", "null"),
    }
    .finish()
}
