//! Lists the evidence of a preset.

use std::sync::Arc;

use chrono::DateTime;

use super::{Evidence, EvidenceError, EvidenceFilter, EvidencePosition, EvidenceRepository};
use crate::api_key::Principal;
use crate::budget::LedgerReader;
use crate::cursor::{CursorScope, InvalidCursor, ReadSize, read_page};
use crate::error::StoreError;

/// Lists evidence. The caller has chosen a preset that it sees.
pub struct ListEvidence {
    /// The evidence.
    pub evidence: Arc<dyn EvidenceRepository>,
    /// Stores the charges of this process.
    pub ledger: Arc<dyn LedgerReader>,
}

/// A page of evidence, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidencePage {
    /// The rows.
    pub rows: Vec<Evidence>,
    /// The cursor of the next page; `None` at the end.
    pub next_cursor: Option<String>,
}

impl ListEvidence {
    /// Returns a page. Pages neither repeat nor skip a row while others are added. A page of large rows ends before its
    /// limit.
    ///
    /// # Errors
    /// The range is empty; the cursor is of another list, filter or caller; the store failed.
    pub async fn page(
        &self,
        caller: &Principal,
        filter: EvidenceFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<EvidencePage, EvidenceError> {
        // The debug form has every member, so that no member can be missing from the digest.
        let (key, members) = (format!("{:?}", caller.id()), format!("{filter:?}"));
        let scope = CursorScope::new("evidence", [key.as_str(), members.as_str()]);
        let mut filter = filter;
        match cursor {
            Some(cursor) => filter.after = Some(parse_position(&scope.decode(cursor)?)?),
            None => self.begin(&filter).await?,
        }
        let next = async |wanted| self.read_after(&mut filter, wanted).await;
        let (rows, has_more) = read_page(limit, Evidence::stored_bytes, next).await?;
        let next_cursor = rows.last().filter(|_| has_more).map(|last| scope.encode(&position(&last.place())));
        Ok(EvidencePage { rows, next_cursor })
    }

    /// Checks the filter of an export or of a first page, and stores the charges of this process.
    ///
    /// # Errors
    /// The range is empty; the store failed.
    pub async fn begin(&self, filter: &EvidenceFilter) -> Result<(), EvidenceError> {
        if filter.since.zip(filter.until).is_some_and(|(since, until)| since >= until) {
            return Err(EvidenceError::EmptyRange);
        }
        Ok(self.ledger.store_pending().await?)
    }

    /// Returns the rows after those that were read so far, and advances the filter; for exports.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read_next(
        &self,
        filter: &mut EvidenceFilter,
        size: &mut ReadSize,
    ) -> Result<Vec<Evidence>, StoreError> {
        let rows = self.read_after(filter, size.elements()).await?;
        size.adapt(rows.iter().map(Evidence::stored_bytes).max().unwrap_or_default());
        Ok(rows)
    }

    async fn read_after(&self, filter: &mut EvidenceFilter, limit: u64) -> Result<Vec<Evidence>, StoreError> {
        let rows = self.evidence.list(filter, limit).await?;
        if let Some(last) = rows.last() {
            filter.after = Some(last.place());
        }
        Ok(rows)
    }
}

fn position((at, id, position): &EvidencePosition) -> String {
    format!("{}/{position}/{id}", at.timestamp_millis())
}

fn parse_position(text: &str) -> Result<EvidencePosition, InvalidCursor> {
    let (millis, rest) = text.split_once('/').ok_or(InvalidCursor)?;
    let (position, id) = rest.split_once('/').ok_or(InvalidCursor)?;
    let at = millis.parse().ok().and_then(DateTime::from_timestamp_millis).ok_or(InvalidCursor)?;
    Ok((at, id.parse().map_err(|_| InvalidCursor)?, position.parse().map_err(|_| InvalidCursor)?))
}
