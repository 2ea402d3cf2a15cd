//! Adoption of journals whose processes are silent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use domain::budget::{EntrySink, JournalDamage, OrphanedJournal, OrphanedJournals, ProcessState, UsageJournalError};
use domain::error::StoreError;
use domain::ids::ProcessId;
use domain::system::Clock;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::entries;
use crate::budget::processes;
use crate::convert::parse;
use crate::database::Database;
use crate::entities::budget_processes::{Column, Entity, Model};
use crate::errors::store_error;

/// The longest time between two looks. After a longer one the store may have been unavailable, so the watch restarts.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// The values of a row of which a living process, or one that recovers its journal, changes one every few seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Signs {
    state: String,
    number: i64,
    folded_sequence: i64,
    seen_at: i64,
}

/// The times of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdoptionSettings {
    /// The silence after which a process is adopted.
    pub adopt_after: Duration,
    /// The longest time between two signs of life of this process. After twice that time without one, it could not write.
    pub heartbeat: Duration,
}

/// The journals in the store whose processes are silent.
///
/// A process is adopted if its row did not change for [`AdoptionSettings::adopt_after`] by the monotonic clock of this process, while the
/// row of this process did. So a store that accepts no writes makes nobody an orphan.
#[derive(Clone)]
pub struct StoreJournals {
    database: Database,
    clock: Arc<dyn Clock>,
    settings: AdoptionSettings,
    own: Arc<dyn Fn() -> Option<ProcessId> + Send + Sync>,
    watched: Arc<Mutex<Watched>>,
}

/// The rows as they were found last, and the time since which they are unchanged.
#[derive(Debug, Default)]
struct Watched {
    rows: HashMap<String, (Signs, Duration)>,
    looked_at: Duration,
}

impl StoreJournals {
    /// Returns the journals of other processes than `own`, which returns the current id of this process.
    pub fn new(
        database: Database,
        clock: Arc<dyn Clock>,
        settings: AdoptionSettings,
        own: impl Fn() -> Option<ProcessId> + Send + Sync + 'static,
    ) -> Self {
        Self { database, clock, settings, own: Arc::new(own), watched: Arc::default() }
    }

    /// Returns the rows that did not change for long enough.
    fn watch(&self, rows: Vec<Model>) -> Vec<Model> {
        let now = self.clock.monotonic();
        let own = (self.own)().map(|process| process.to_string());
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(watched.looked_at) > LONGEST_GAP {
            watched.rows.clear();
        }
        watched.looked_at = now;
        let since = |row: &Model| match watched.rows.get(&row.id) {
            Some((signs, since)) if *signs == signs_of(row) => *since,
            _ => now,
        };
        let mut found: HashMap<String, (Signs, Duration)> =
            rows.iter().map(|row| (row.id.clone(), (signs_of(row), since(row)))).collect();
        let own_since = own.as_ref().and_then(|own| found.get(own)).map(|(_, since)| *since);
        if own_since.is_none_or(|since| now.saturating_sub(since) > self.settings.heartbeat * 2) {
            // This process could not write either.
            for (_, since) in found.values_mut() {
                *since = now;
            }
        }
        let is_silent = |row: &Model| {
            let since = found.get(&row.id).map_or(now, |(_, since)| *since);
            own.as_ref() != Some(&row.id) && now.saturating_sub(since) >= self.settings.adopt_after
        };
        let silent = rows.into_iter().filter(|row| row.has_store_journal && is_silent(row)).collect();
        // The own row keeps the time of its last change.
        if let (Some(own), Some(since)) = (own, own_since)
            && let Some(row) = found.get_mut(&own)
        {
            row.1 = since;
        }
        watched.rows = found;
        silent
    }

    /// Marks a silent process as adopted. Returns false if it moved meanwhile.
    async fn adopt(&self, row: &Model) -> Result<bool, StoreError> {
        let Signs { state, number, folded_sequence, seen_at } = signs_of(row);
        let transaction = self.database.begin().await?;
        let update = Entity::update_many()
            .col_expr(Column::State, Expr::value(ProcessState::Adopted.as_str()))
            .filter(Column::Id.eq(&row.id))
            .filter(Column::State.eq(state))
            .filter(Column::Number.eq(number))
            .filter(Column::FoldedSequence.eq(folded_sequence))
            .filter(Column::SeenAt.eq(seen_at));
        let updated = update.exec(&transaction).await.map_err(store_error)?;
        transaction.commit().await?;
        Ok(updated.rows_affected == 1)
    }
}

fn signs_of(row: &Model) -> Signs {
    Signs { state: row.state.clone(), number: row.number, folded_sequence: row.folded_sequence, seen_at: row.seen_at }
}

#[async_trait]
impl OrphanedJournals for StoreJournals {
    async fn contains(&self, process: ProcessId) -> Result<bool, UsageJournalError> {
        let readers = self.database.readers().map_err(port_error)?;
        let row = processes::find(readers, process).await.map_err(port_error)?;
        Ok(row.is_some_and(|row| row.has_store_journal))
    }

    async fn find(&self) -> Result<Vec<Box<dyn OrphanedJournal>>, UsageJournalError> {
        let rows = processes::unended(self.database.readers().map_err(port_error)?).await.map_err(port_error)?;
        let mut found: Vec<Box<dyn OrphanedJournal>> = Vec::new();
        for row in self.watch(rows) {
            let process = parse(&row.id, "budget_processes.id", &row.id).map_err(port_error)?;
            if self.adopt(&row).await.map_err(port_error)? {
                tracing::warn!(process.id = %process, "silent process adopted");
                found.push(Box::new(StoreOrphan { process, database: self.database.clone() }));
            }
        }
        Ok(found)
    }
}

/// The journal of an adopted process.
struct StoreOrphan {
    process: ProcessId,
    database: Database,
}

#[async_trait]
impl OrphanedJournal for StoreOrphan {
    fn process(&self) -> ProcessId {
        self.process
    }

    async fn read(&self, sink: &mut dyn EntrySink) -> Result<JournalDamage, UsageJournalError> {
        let readers = self.database.readers().map_err(port_error)?;
        let mut last = 0;
        loop {
            let page = entries::read_after(readers, self.process, last).await.map_err(port_error)?;
            let Some(newest) = page.last() else { return Ok(JournalDamage::default()) };
            last = newest.sequence;
            sink.take(page).await?;
        }
    }

    async fn quarantine(&self) -> Result<(), UsageJournalError> {
        Ok(())
    }

    async fn finish(&self) -> Result<(), UsageJournalError> {
        let transaction = self.database.begin().await.map_err(port_error)?;
        entries::remove(&transaction, self.process, None).await.map_err(port_error)?;
        transaction.commit().await.map_err(port_error)
    }

    async fn remove_if_old(&self) -> Result<bool, UsageJournalError> {
        Ok(true)
    }
}

fn port_error(error: StoreError) -> UsageJournalError {
    UsageJournalError::Unavailable(Box::new(error))
}
