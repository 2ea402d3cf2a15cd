//! Changing a destination.

use chrono::{DateTime, TimeDelta, Utc};

use super::fields::audited;
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

    /// Replaces the given fields and keeps the others. Collections are replaced as wholes. A changed URL, header or
    /// secret requires a successful test delivery. An update without effect writes nothing.
    ///
    /// # Errors
    /// An invalid field, or no field; a key of another workspace; a failed test delivery; an unknown destination; a
    /// concurrent change; a store failure.
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
        after.updated_at = Some(next_update_time(self.ports.clock.now(), before.updated_at));
        let audit = audited(actor, "destination.update", before.id, Some(&before), Some(&after));
        if self.ports.destinations.update(&after, before.updated_at, &audit).await? {
            return Ok(after);
        }
        // The destination existed before: it was deleted since, or changed.
        self.ports.find(id).await?;
        Err(DestinationError::Changed)
    }
}

/// Returns the current time, or the time just after the last change: update times are unique, because they detect
/// concurrent changes. They are stored in milliseconds.
fn next_update_time(now: DateTime<Utc>, last: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
    last.map_or(now, |last| now.max(last + TimeDelta::milliseconds(1)))
}
