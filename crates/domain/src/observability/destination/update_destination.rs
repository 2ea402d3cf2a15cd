//! Changing a destination.

use chrono::{DateTime, TimeDelta, Utc};

use super::audited::audited;
use super::{DestinationError, DestinationFields, DestinationPorts};
use crate::audit::Actor;
use crate::observability::Destination;

/// Changes a destination.
pub struct UpdateDestination {
    ports: DestinationPorts,
}

impl UpdateDestination {
    /// Wires the ports.
    pub fn new(ports: DestinationPorts) -> Self {
        Self { ports }
    }

    /// Replaces what is said and leaves the rest. Where URL, headers or secret become others, the receiver is called for
    /// a test first. The collections are replaced as wholes. Where nothing becomes another, nothing is done.
    ///
    /// # Errors
    /// A fault of a member, or none said; a key that is none of the workspace; a receiver that refuses the test; no such
    /// destination; somebody who changed it at the same time; the store.
    pub async fn execute(
        &self,
        actor: &Actor,
        id: &str,
        fields: &DestinationFields,
    ) -> Result<Destination, DestinationError> {
        if fields.is_empty() {
            return Err(DestinationError::NothingToChange);
        }
        let before = self.ports.find(id).await?;
        let mut after = self.ports.with_keys(fields.apply(&before)?, fields).await?;
        if after == before {
            return Ok(before);
        }
        let same_call = |one: &Destination, other: &Destination| {
            one.url == other.url && one.headers == other.headers && one.signing_secret == other.signing_secret
        };
        if !same_call(&before, &after) {
            self.ports.test(&after).await?;
        }
        after.updated_at = Some(later(self.ports.clock.now(), before.updated_at));
        let audit = audited(actor, "destination.update", before.id, Some(&before), Some(&after));
        if self.ports.destinations.update(&after, before.updated_at, &audit).await? {
            return Ok(after);
        }
        // It was there a moment ago: deleted since, or changed.
        self.ports.find(id).await?;
        Err(DestinationError::Changed)
    }
}

/// Now, or just after the last change: each change has a moment of its own, by which the next one knows it. Moments are
/// kept in milliseconds.
fn later(now: DateTime<Utc>, last: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
    last.map_or(now, |last| now.max(last + TimeDelta::milliseconds(1)))
}
