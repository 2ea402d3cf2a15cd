//! The change feed: it tells a process which cached records other processes changed, so that it drops only those.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::ids::{GuardrailId, PresetId, WorkspaceId};
use crate::secret::ApiKeyHash;

/// The highest number of keys that one transaction writes one by one. A transaction that changes more keys writes their
/// workspace.
pub const MAX_NAMED_KEYS: usize = 64;
/// The highest number of changes that one read returns. A reader that is further behind starts over.
pub const MAX_CHANGES: usize = 10_000;
/// The time for which a change is kept after a newer one was written.
pub const CHANGE_RETENTION: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// The subject of a change, which caches drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeSubject {
    /// A key, by the hash under which it is cached. After a rotation this is the previous hash.
    Key(ApiKeyHash),
    /// A workspace. Cached keys contain some of its data, so all of its keys count as changed.
    Workspace(WorkspaceId),
    /// The rules or the budget of a guardrail. Keys with a new assignment are written as keys.
    Guardrail(GuardrailId),
    /// A preset.
    Preset(PresetId),
    /// The catalogue.
    Catalogue,
    /// The destinations of traces.
    Destinations,
    /// The paused providers.
    Providers,
    /// All subjects, for migrations and for changes by a newer version that this version cannot decode.
    Everything,
}

impl ChangeSubject {
    /// Returns the subjects for a change of several keys of one workspace: the keys in the order of their hashes, or
    /// the workspace if there are more than [`MAX_NAMED_KEYS`].
    pub fn keys_of(workspace_id: WorkspaceId, keys: &[ApiKeyHash]) -> Vec<Self> {
        if keys.len() > MAX_NAMED_KEYS {
            return vec![Self::Workspace(workspace_id)];
        }
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.into_iter().map(Self::Key).collect()
    }
}

/// The position of a change in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePosition {
    /// The sequence number of the change. Sequence numbers have no gaps.
    pub number: u64,
    /// A random number. It differs for the same sequence number if the feed was restored from a backup and then
    /// continued.
    pub mark: i64,
}

/// A change of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The position.
    pub position: ChangePosition,
    /// The subject.
    pub subject: ChangeSubject,
}

/// The result of a read of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// All changes after the reader's position, in order.
    Continued(Vec<Change>),
    /// The feed does not continue from the reader's position, or is too far ahead of it. The reader drops everything
    /// and continues from this position, the newest one.
    StartOver(ChangePosition),
}

impl Changes {
    /// Returns the changes after `last`. `rows` is the feed from the number of `last` on, in order. Returns `None` if
    /// the feed does not continue from `last`: that change is missing or another one, the numbers have a gap, or there
    /// are more than [`MAX_CHANGES`] changes.
    pub fn from_feed(last: ChangePosition, rows: Vec<Change>) -> Option<Self> {
        let mut rows = rows.into_iter();
        if rows.next()?.position != last || rows.len() > MAX_CHANGES {
            return None;
        }
        let changes: Vec<Change> = rows.collect();
        let is_complete = (last.number + 1..).zip(&changes).all(|(number, change)| change.position.number == number);
        is_complete.then_some(Self::Continued(changes))
    }
}

/// Reads the feed.
///
/// # Contract
/// - A change is written in the transaction that makes it: a reader that sees the change also sees its effect.
/// - Numbers come from one counter that is raised in the same transaction, so that they commit in order and without
///   gaps across all processes. A transaction that changes nothing writes nothing.
/// - A change is kept for [`CHANGE_RETENTION`] after a newer one was written. The newest is always kept.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ChangeFeed: Send + Sync {
    /// Returns the changes after `last`, the newest position that the reader knows, or [`Changes::StartOver`] for
    /// `None`.
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError>;
}

/// Says when the feed is to be read again.
#[async_trait]
pub trait ChangeSignal: Send + Sync {
    /// Waits until the feed may have changed, at most for a poll interval. A change since the last call counts.
    async fn wait(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: u64, mark: i64) -> Change {
        Change { position: ChangePosition { number, mark }, subject: ChangeSubject::Catalogue }
    }

    #[test]
    fn from_feed_rejects_gaps_and_other_changes() {
        let last = ChangePosition { number: 4, mark: 7 };
        let continued = |rows: &[(u64, i64)]| {
            Changes::from_feed(last, rows.iter().map(|(number, mark)| change(*number, *mark)).collect())
        };
        assert_eq!(continued(&[(4, 7)]), Some(Changes::Continued(Vec::new())));
        assert_eq!(continued(&[(4, 7), (5, 1), (6, 2)]), Some(Changes::Continued(vec![change(5, 1), change(6, 2)])));
        assert_eq!(continued(&[]), None, "the last change is missing");
        assert_eq!(continued(&[(5, 1), (6, 2)]), None, "the last change was pruned");
        assert_eq!(continued(&[(4, 8), (5, 1)]), None, "another change has its number");
        assert_eq!(continued(&[(4, 7), (6, 2)]), None, "a change is missing");
    }

    #[test]
    fn from_feed_rejects_more_changes_than_the_limit() {
        let last = ChangePosition { number: 0, mark: 0 };
        let rows = |count: u64| (0..=count).map(|number| change(number, 0)).collect::<Vec<_>>();
        let most = MAX_CHANGES as u64;
        assert!(
            matches!(Changes::from_feed(last, rows(most)), Some(Changes::Continued(all)) if all.len() == MAX_CHANGES)
        );
        assert_eq!(Changes::from_feed(last, rows(most + 1)), None);
    }

    #[test]
    fn keys_of_returns_workspace_when_keys_exceed_the_limit() {
        let id = WorkspaceId::from_uuid(uuid::Uuid::from_u128(1));
        let keys: Vec<ApiKeyHash> = (0..=64).map(|number| ApiKeyHash::from_bytes([number; 32])).collect();
        assert_eq!(ChangeSubject::keys_of(id, &[keys[1], keys[0]]), [keys[0], keys[1]].map(ChangeSubject::Key));
        assert_eq!(ChangeSubject::keys_of(id, &keys[..64]).len(), 64);
        assert_eq!(ChangeSubject::keys_of(id, &keys), [ChangeSubject::Workspace(id)]);
    }
}
