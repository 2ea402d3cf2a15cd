//! Creating, changing, deleting and testing destinations.

use chrono::{DateTime, TimeDelta, Utc};

use super::fields::{audited, audited_unreadable};
use super::{DestinationError, DestinationFields, InvalidDestination, ManageDestinations, checked_url};
use crate::authority::Right;
use crate::change::{Change, MAX_ATTEMPTS};
use crate::ids::WorkspaceId;
use crate::observability::{Destination, DestinationInsert, DestinationKind, SAMPLING_PARTS};

impl ManageDestinations {
    /// Validates the fields, sends a test delivery, and adds the destination to the given workspace, else to the
    /// default workspace.
    ///
    /// # Errors
    /// An invalid field; a key of another workspace; a failed test delivery; too many destinations of the kind in the
    /// workspace; an unknown workspace; a store failure.
    pub async fn create(
        &self,
        change: &Change<'_, Destination>,
        workspace_id: Option<WorkspaceId>,
        fields: &DestinationFields,
    ) -> Result<Destination, DestinationError> {
        let by = change.by();
        by.check(Right::Write)?;
        let workspace_id = self.workspace(by, workspace_id).await?;
        let destination = self.drafted(workspace_id, fields)?;
        let destination = self.with_keys(destination, fields).await?;
        // Avoids a test delivery that cannot succeed; the store enforces the limit.
        let others = self.destinations.list(Some(workspace_id)).await?;
        if others.iter().filter(|other| other.kind == destination.kind).count() as u64 >= Destination::MAX_PER_KIND {
            return Err(DestinationError::TooMany(destination.kind));
        }
        self.send_test(&destination).await?;
        let audit = audited(by.actor(), "destination.create", destination.id, None, Some(&destination));
        let audit = change.audited(audit, &destination);
        match self.destinations.insert(&destination, Destination::MAX_PER_KIND, &audit).await? {
            DestinationInsert::Added => Ok(destination),
            DestinationInsert::TooMany => Err(DestinationError::TooMany(destination.kind)),
            DestinationInsert::UnknownWorkspace => Err(DestinationError::UnknownWorkspace),
        }
    }

    fn drafted(
        &self,
        workspace_id: WorkspaceId,
        fields: &DestinationFields,
    ) -> Result<Destination, InvalidDestination> {
        let required = |path: &str| InvalidDestination::new(path, "is required");
        if fields.name.is_none() {
            return Err(required("name"));
        }
        let kind = fields.kind.as_deref().ok_or_else(|| required("type"))?;
        let kind = DestinationKind::from_name(kind)
            .ok_or_else(|| InvalidDestination::new("type", "must be otel-collector or webhook"))?;
        let given = fields.url.as_deref().ok_or_else(|| required("config.url"))?;
        checked_url(given).map_err(|fault| InvalidDestination::new("config.url", fault))?;
        fields.apply(&Destination {
            id: self.ids.destination_id(),
            workspace_id,
            name: String::new(),
            kind,
            url: String::new(),
            headers: Vec::new(),
            signing_secret: None,
            enabled: true,
            // Content of requests is sent only to destinations that ask for it.
            privacy_mode: true,
            sampling: SAMPLING_PARTS,
            api_key_ids: None,
            created_at: self.clock.now(),
            updated_at: None,
        })
    }

    /// Replaces the given fields and keeps the others. Collections are replaced as wholes. A changed URL, header or
    /// secret requires a successful test delivery. Messages that failed are due at once. An update without effect writes
    /// nothing.
    ///
    /// # Errors
    /// An invalid field, or no field; a key of another workspace; a failed test delivery; an unknown destination, or a
    /// version of it that the caller does not accept; concurrent changes; a store failure.
    pub async fn update(
        &self,
        change: &Change<'_, Destination>,
        id: &str,
        fields: &DestinationFields,
    ) -> Result<Destination, DestinationError> {
        let by = change.by();
        by.check(Right::Write)?;
        if fields.is_empty() {
            return Err(DestinationError::NothingToChange);
        }
        let same_call = |one: &Destination, other: &Destination| {
            one.url == other.url && one.headers == other.headers && one.signing_secret == other.signing_secret
        };
        let mut tested: Option<Destination> = None;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.get(by, id).await?;
            change.check_version(before.version())?;
            let mut after = self.with_keys(fields.apply(&before)?, fields).await?;
            if after == before {
                return Ok(before);
            }
            if !same_call(&before, &after) && !tested.as_ref().is_some_and(|tested| same_call(tested, &after)) {
                self.send_test(&after).await?;
            }
            after.updated_at = Some(next_update_time(self.clock.now(), before.updated_at));
            let audit = audited(by.actor(), "destination.update", before.id, Some(&before), Some(&after));
            if self.destinations.update(&after, before.updated_at, &change.audited(audit, &after)).await? {
                return Ok(after);
            }
            // The destination was changed since, or deleted.
            tested = Some(after);
        }
        Err(DestinationError::Changed)
    }
}

/// Returns the current time, or the time just after the last change: update times are unique, because they detect
/// concurrent changes. They are stored in milliseconds.
fn next_update_time(now: DateTime<Utc>, last: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let now = DateTime::from_timestamp_millis(now.timestamp_millis()).unwrap_or(now);
    last.map_or(now, |last| now.max(last + TimeDelta::milliseconds(1)))
}

impl ManageDestinations {
    /// Deletes the destination and its pending messages, also one whose settings cannot be read, such as after a loss of
    /// their key. The audit entry of such a deletion has its name alone.
    ///
    /// # Errors
    /// An unknown destination, or a version of it that the caller does not accept; concurrent changes; a store failure.
    pub async fn delete(&self, change: &Change<'_, ()>, id: &str) -> Result<(), DestinationError> {
        let by = change.by();
        by.check(Right::Write)?;
        for _ in 0..MAX_ATTEMPTS {
            let (named, audit) = match self.get(by, id).await {
                Ok(before) => {
                    (before.named(), audited(by.actor(), "destination.delete", before.id, Some(&before), None))
                }
                Err(DestinationError::Store(_)) => {
                    let named = self.named(by, id).await?;
                    let audit = audited_unreadable(by.actor(), &named);
                    (named, audit)
                }
                Err(error) => return Err(error),
            };
            change.check_version(named.version())?;
            if self.destinations.delete(named.id, named.updated_at, &change.audited(audit, &())).await? {
                return Ok(());
            }
        }
        Err(DestinationError::Changed)
    }

    /// Sends a delivery without spans, also to a disabled destination. If it passes, messages that failed are due at once.
    ///
    /// # Errors
    /// A failed delivery; an unknown destination, or a version of it that the caller does not accept; a store failure.
    pub async fn test(&self, change: &Change<'_, ()>, id: &str) -> Result<Destination, DestinationError> {
        change.by().check(Right::Write)?;
        let destination = self.get(change.by(), id).await?;
        change.check_version(destination.version())?;
        self.send_test(&destination).await?;
        self.destinations.resume(destination.id).await?;
        Ok(destination)
    }
}
