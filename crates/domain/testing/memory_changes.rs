//! The change feed in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_store::{MemoryChangeFeed, State};
use crate::change_feed::{CHANGE_RETENTION, Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use crate::error::StoreError;

/// The kept changes, and the numbers of the newest ones.
#[derive(Clone)]
pub(super) struct MemoryChanges {
    /// The changes with their times. Never empty.
    kept: VecDeque<(Change, DateTime<Utc>)>,
    newest: ChangePosition,
    /// The number of the newest change of limits.
    pub(super) limits: u64,
    /// The number of the newest change of the catalogue.
    pub(super) catalogue: u64,
}

impl Default for MemoryChanges {
    fn default() -> Self {
        let newest = ChangePosition { number: 0, mark: mark() };
        let first = Change { position: newest, subject: ChangeSubject::Everything };
        Self { kept: VecDeque::from([(first, DateTime::UNIX_EPOCH)]), newest, limits: 0, catalogue: 0 }
    }
}

/// Returns a mark that is unique in this process: copies of a store continue with different marks.
fn mark() -> i64 {
    static MARKS: AtomicI64 = AtomicI64::new(1);
    MARKS.fetch_add(1, Ordering::Relaxed)
}

impl State {
    /// Writes changes to the feed, in their transaction.
    pub(super) fn changed(&mut self, at: DateTime<Utc>, subjects: impl IntoIterator<Item = ChangeSubject>) {
        let feed = &mut self.changes;
        for subject in subjects {
            feed.newest = ChangePosition { number: feed.newest.number + 1, mark: mark() };
            feed.kept.push_back((Change { position: feed.newest, subject }, at));
            if subject == ChangeSubject::Catalogue {
                feed.catalogue = feed.newest.number;
            }
        }
        let is_replaced = |next: &(Change, DateTime<Utc>)| at - next.1 > CHANGE_RETENTION;
        while feed.kept.get(1).is_some_and(is_replaced) {
            feed.kept.pop_front();
        }
    }

    /// Writes a change that lowers, raises or removes limits.
    pub(super) fn limits_changed(&mut self, at: DateTime<Utc>, subjects: impl IntoIterator<Item = ChangeSubject>) {
        self.changed(at, subjects);
        self.changes.limits = self.changes.newest.number;
    }
}

#[async_trait]
impl ChangeFeed for MemoryChangeFeed {
    async fn changes_since(&self, last: Option<ChangePosition>) -> Result<Changes, StoreError> {
        let state = self.0.state();
        let feed = &state.changes;
        let continued = last.and_then(|last| {
            let rows = feed.kept.iter().map(|(change, _)| *change);
            Changes::from_feed(last, rows.filter(|change| change.position.number >= last.number).collect())
        });
        Ok(continued.unwrap_or(Changes::StartOver(feed.newest)))
    }
}
