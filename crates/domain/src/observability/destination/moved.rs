//! What moves to another origin takes no stored secret along.

use super::url::Origin;
use super::{DestinationFields, InvalidDestination, MASK, headers};
use crate::observability::Destination;

impl DestinationFields {
    /// Who may change a destination is shown none of its secrets, and must not have them sent to a receiver of their own
    /// choice either: where scheme, host or port become others, every secret that is to be sent there is given anew.
    pub(super) fn must_leave_secrets_behind(
        &self,
        before: &Destination,
        after: &Destination,
    ) -> Result<(), InvalidDestination> {
        // An origin that cannot be told is nobody's.
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
            "is of another scheme, host or port, where no stored secret is sent: give anew, in the same request, {}",
            kept.join(", ")
        );
        Err(InvalidDestination::new("config.url", fault))
    }

    /// True where a header of that name is said with a value of its own.
    fn gives_header(&self, name: &str) -> bool {
        let is_it = |(given, value): &(String, String)| {
            headers::checked(given, value).is_ok_and(|(given, value)| given == name && value != MASK)
        };
        self.headers.iter().flatten().any(is_it)
    }
}
