//! Changes of origin: no stored secret is sent to another server.

use super::url::Origin;
use super::{DestinationFields, InvalidDestination, MASK, headers};
use crate::observability::Destination;

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
        if after.signing_secret.is_some() && self.secret.as_deref().is_none_or(|secret| secret == MASK) {
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
            headers::checked(given, value).is_ok_and(|(given, value)| given == name && value != MASK)
        };
        self.headers.iter().flatten().any(is_it)
    }
}
