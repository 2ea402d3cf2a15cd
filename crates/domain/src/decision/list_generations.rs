//! Lists the usage records of Decisions requests.

use std::sync::Arc;

use chrono::DateTime;

use super::usage_reader::check_read_records;
use super::{Generation, GenerationNames, ReadUsageError, UsageNames, UsageReader};
use crate::api_key::Principal;
use crate::budget::LedgerReader;
use crate::cursor::{CursorScope, InvalidCursor, ReadSize, read_page};
use crate::error::StoreError;
use crate::naming::ResourceName;
use crate::usage::{UsageFilter, UsageRecord, UsageRepository};

/// Lists the records of Decisions requests.
pub struct ListGenerations {
    usage: Arc<dyn UsageRepository>,
    ledger: Arc<dyn LedgerReader>,
    filters: UsageNames,
    names: GenerationNames,
}

/// A page of records, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationPage {
    /// The records.
    pub generations: Vec<Generation>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

impl ListGenerations {
    /// Wires the ports. `ledger` stores the charges of this process; `filters` has what a caller may name.
    pub fn new(
        usage: Arc<dyn UsageRepository>,
        ledger: Arc<dyn LedgerReader>,
        filters: UsageNames,
        names: GenerationNames,
    ) -> Self {
        Self { usage, ledger, filters, names }
    }

    /// Returns the filter of the records that the caller reads: those of `filter`, of one key and of one workspace.
    ///
    /// # Errors
    /// An inference key asks for others, a name is unknown or ambiguous, the range is empty, or a store failed.
    pub async fn narrow(
        &self,
        caller: &Principal,
        filter: UsageFilter,
        key: Option<&ResourceName>,
        workspace: Option<&ResourceName>,
    ) -> Result<UsageFilter, ReadUsageError> {
        if filter.since.zip(filter.until).is_some_and(|(since, until)| since >= until) {
            return Err(ReadUsageError::EmptyRange);
        }
        let (api_key, workspaces) = self.filters.select(&UsageReader::from(caller), key, workspace).await?;
        Ok(UsageFilter { workspaces, api_key, ..filter })
    }

    /// Returns a page of the records of a filter from [`Self::narrow`], newest first by their charge. Pages neither
    /// repeat nor skip a record while others are added. A page of large records ends before its limit.
    ///
    /// # Errors
    /// The cursor is of another list, filter or caller; the page would read too many records; a store failed.
    pub async fn page(
        &self,
        caller: &Principal,
        filter: UsageFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<GenerationPage, ReadUsageError> {
        // The debug form has every member, so that no member can be missing from the digest.
        let (key, members) = (format!("{:?}", caller.id()), format!("{filter:?}"));
        let scope = CursorScope::new("generations", [key.as_str(), members.as_str()]);
        let mut filter = filter;
        match cursor {
            Some(cursor) => filter.after = Some(parse_position(&scope.decode(cursor)?)?),
            None => self.ledger.store_pending().await?,
        }
        check_read_records(&*self.usage, &filter).await?;
        let next = async |wanted| self.read_after(&mut filter, wanted).await;
        let (records, has_more) = read_page(limit, UsageRecord::stored_bytes, next).await?;
        let next_cursor = records.last().filter(|_| has_more).map(|last| scope.encode(&position(last)));
        let generations = records.into_iter().map(|record| self.names.resolve(record)).collect();
        Ok(GenerationPage { generations, next_cursor })
    }

    /// Returns the records after those that were read so far, and advances the filter; for exports.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read_next(
        &self,
        filter: &mut UsageFilter,
        size: &mut ReadSize,
    ) -> Result<Vec<UsageRecord>, StoreError> {
        let records = self.read_after(filter, size.elements()).await?;
        size.adapt(records.iter().map(UsageRecord::stored_bytes).max().unwrap_or_default());
        Ok(records)
    }

    async fn read_after(&self, filter: &mut UsageFilter, limit: u64) -> Result<Vec<UsageRecord>, StoreError> {
        let records = self.usage.list(filter, limit).await?;
        if let Some(last) = records.last() {
            filter.after = Some((last.charged_at, last.id.clone()));
        }
        Ok(records)
    }

    /// Stores the charges of this process, and checks that an export does not read too many records.
    ///
    /// # Errors
    /// The export would read too many records; a store failed.
    pub async fn begin_export(&self, filter: &UsageFilter) -> Result<(), ReadUsageError> {
        self.ledger.store_pending().await?;
        check_read_records(&*self.usage, filter).await
    }

    /// Resolves the names in a record.
    pub fn resolve(&self, record: UsageRecord) -> Generation {
        self.names.resolve(record)
    }
}

fn position(record: &UsageRecord) -> String {
    format!("{}/{}", record.charged_at.timestamp_millis(), record.id)
}

fn parse_position(position: &str) -> Result<(DateTime<chrono::Utc>, crate::ids::DecisionId), InvalidCursor> {
    let (millis, id) = position.split_once('/').ok_or(InvalidCursor)?;
    let at = millis.parse().ok().and_then(DateTime::from_timestamp_millis).ok_or(InvalidCursor)?;
    Ok((at, id.parse().map_err(|_| InvalidCursor)?))
}

#[cfg(test)]
mod tests;
