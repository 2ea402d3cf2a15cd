//! The change feed in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::memory_state::{State, mark};
use super::memory_store::MemoryChangeFeed;
use crate::change_feed::{CHANGE_RETENTION, Change, ChangeFeed, ChangePosition, ChangeSubject, Changes};
use crate::error::StoreError;

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
