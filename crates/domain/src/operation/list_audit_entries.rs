//! Lists the entries of the audit log.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::audit::{AuditEntry, AuditLog};
use crate::authority::{Authority, Restricted, Right};
use crate::cursor::{CursorScope, InvalidCursor, PAGE_BYTES, ReadSize};
use crate::error::{ErrorKind, StoreError};

/// The most entries that a request for one page reads.
const MAX_READ_ENTRIES: u64 = 100_000;

/// Lists the entries of the audit log, newest first.
#[derive(Clone)]
pub struct ListAuditEntries {
    log: Arc<dyn AuditLog>,
}

/// Selects entries. An absent member selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// A text that the actor's name contains.
    pub actor: Option<String>,
    /// A text that the action contains.
    pub action: Option<String>,
    /// A text that the subject contains.
    pub subject: Option<String>,
    /// Entries of this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Entries before this time.
    pub until: Option<DateTime<Utc>>,
}

/// A page of entries, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// The cursor of the next page; `None` at the end of the log.
    pub next_cursor: Option<String>,
}

/// A position in the log, from the newest entry down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPosition {
    before: u64,
    is_end: bool,
    /// The size of the next read: an entry may have the rules of a guardrail twice.
    size: ReadSize,
    /// The number of entries that were read.
    read: u64,
}

impl AuditPosition {
    /// The position of the newest entry.
    pub const NEWEST: Self = Self { before: u64::MAX, is_end: false, size: ReadSize::FIRST, read: 0 };

    /// Returns true behind the oldest entry.
    pub fn is_end(self) -> bool {
        self.is_end
    }
}

/// An error of listing entries.
#[derive(Debug, thiserror::Error)]
pub enum ListAuditEntriesError {
    /// The caller lacks the right.
    #[error(transparent)]
    Restricted(#[from] Restricted),
    /// The range is empty.
    #[error("until must be later than since")]
    EmptyRange,
    /// The cursor is of another list, filter or caller.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// The store failed.
    #[error("the audit log cannot be read")]
    Store(#[from] StoreError),
}

impl ListAuditEntriesError {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Restricted(restricted) => restricted.kind(),
            Self::EmptyRange | Self::Cursor(_) => ErrorKind::InvalidRequest,
            Self::Store(store) => store.kind(),
        }
    }
}

impl AuditFilter {
    fn selects(&self, entry: &AuditEntry) -> bool {
        let contains = |text: &str, part: &Option<String>| part.as_deref().is_none_or(|part| text.contains(part));
        contains(&entry.actor.name, &self.actor)
            && contains(&entry.action, &self.action)
            && contains(&entry.subject, &self.subject)
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }
}

impl ListAuditEntries {
    /// Wires the port.
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log }
    }

    /// Checks that the caller may list the entries of a filter.
    ///
    /// # Errors
    /// The caller lacks [`Right::ReadAll`], or the range is empty.
    pub fn check(&self, by: &Authority, filter: &AuditFilter) -> Result<(), ListAuditEntriesError> {
        by.check(Right::ReadAll)?;
        let is_empty = filter.since.zip(filter.until).is_some_and(|(since, until)| since >= until);
        if is_empty { Err(ListAuditEntriesError::EmptyRange) } else { Ok(()) }
    }

    /// Returns a page of the selected entries. It reads at most 100,000 entries, returns at most about a mebibyte of them,
    /// and then returns what it found, with a cursor. Pages neither repeat nor skip an entry while others are added.
    ///
    /// # Errors
    /// As [`Self::check`]; the cursor is of another list, filter or caller; the store failed.
    pub async fn page(
        &self,
        by: &Authority,
        filter: &AuditFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<AuditPage, ListAuditEntriesError> {
        self.check(by, filter)?;
        // The debug form has every member, so that no member can be missing from the digest.
        let members = format!("{filter:?}");
        let scope = CursorScope::new("audit", [by.actor().name.as_str(), members.as_str()]);
        let mut position = AuditPosition::NEWEST;
        if let Some(cursor) = cursor {
            position.before = scope.decode(cursor)?.parse().map_err(|_| InvalidCursor)?;
        }
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while !position.is_end && entries.len() <= limit && bytes < PAGE_BYTES && position.read < MAX_READ_ENTRIES {
            let read = self.read_next(filter, &mut position).await?;
            bytes += read.iter().map(stored_bytes).sum::<u64>();
            entries.extend(read);
        }
        if entries.len() > limit {
            entries.truncate(limit);
            position.is_end = false;
            position.before = entries.last().map_or(0, |last| last.seq);
        }
        let next_cursor = (!position.is_end).then(|| scope.encode(&position.before.to_string()));
        Ok(AuditPage { entries, next_cursor })
    }

    /// Reads entries from a position on, advances it, and returns the selected ones.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read_next(
        &self,
        filter: &AuditFilter,
        position: &mut AuditPosition,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let size = position.size.elements();
        let mut read = self.log.read_before(position.before, size).await?;
        position.is_end = (read.len() as u64) < size;
        position.before = read.last().map_or(0, |last| last.seq);
        position.read += read.len() as u64;
        position.size.adapt(read.iter().map(stored_bytes).max().unwrap_or_default());
        read.retain(|entry| filter.selects(entry));
        Ok(read)
    }
}

/// Estimates the size of an entry.
fn stored_bytes(entry: &AuditEntry) -> u64 {
    const ENTRY: usize = 512;
    (ENTRY + entry.details.text().len()) as u64
}

#[cfg(test)]
mod tests;
