//! Verification of the log and the managed rows.

use std::sync::Arc;

use super::{AuditAnchor, AuditHash, AuditLog, AuditState, AuditVerification, AuditViolation, StoredAuditEntry};
use crate::error::StoreError;

/// The most entries of one read.
const PAGE_ENTRIES: u64 = 1000;
/// The most managed rows that are named.
const MAX_NAMED_ROWS: usize = 100;

/// Reads the whole log and recomputes every hash, then compares the managed rows with the newest entry.
pub struct VerifyAuditLog {
    log: Arc<dyn AuditLog>,
}

impl VerifyAuditLog {
    /// Wires the port.
    pub fn new(log: Arc<dyn AuditLog>) -> Self {
        Self { log }
    }

    /// Verifies the log page by page, from the lowest number on, and that it contains the anchor.
    pub async fn execute(&self, anchor: Option<AuditAnchor>) -> Result<AuditVerification, StoreError> {
        let mut verifier = Verifier { log: &*self.log, found: AuditVerification::default(), anchor };
        let violation = verifier.run().await?;
        let mut found = AuditVerification { violation, ..verifier.found };
        match self.log.check_rows(MAX_NAMED_ROWS).await {
            Ok(violations) => found.row_violations = violations,
            Err(StoreError::Corrupt(detail)) if found.violation.is_none() => {
                found.violation = Some(AuditViolation::Unreadable(detail));
            }
            Err(StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }
}

/// The state of a verification.
struct Verifier<'a> {
    log: &'a dyn AuditLog,
    found: AuditVerification,
    /// The anchor until it is found.
    anchor: Option<AuditAnchor>,
}

impl Verifier<'_> {
    async fn run(&mut self) -> Result<Option<AuditViolation>, StoreError> {
        // Read before the entries: entries that are added meanwhile are no violation.
        let state = match self.state().await? {
            Ok(state) => state,
            Err(violation) => return Ok(Some(violation)),
        };
        self.found.removed = state.removed_count;
        let mut before = state.removed;
        let (mut after, mut limit) = (None, PAGE_ENTRIES);
        let mut found_newest = state.newest == before;
        loop {
            let page = match self.log.read_stored(after, limit).await {
                // One unreadable row fails its page: the rows before it are read one by one.
                Err(StoreError::Corrupt(_)) if limit > 1 => {
                    limit = 1;
                    continue;
                }
                Err(StoreError::Corrupt(detail)) => return Ok(Some(AuditViolation::Unreadable(detail))),
                page => page?,
            };
            let Some(last) = page.last() else { break };
            after = Some(last.seq);
            for entry in &page {
                match self.check(entry, before).await? {
                    Ok(seen) => before = seen,
                    Err(violation) => return Ok(Some(violation)),
                }
                if before.seq == state.newest.seq {
                    if before.hash != state.newest.hash {
                        return Ok(Some(AuditViolation::NewestExchanged(before.seq)));
                    }
                    found_newest = true;
                }
            }
        }
        if !found_newest && before.seq < state.newest.seq {
            return Ok(Some(match self.found.newest {
                Some(found) => AuditViolation::EndMissing { newest: state.newest, found: found.seq },
                None => AuditViolation::Emptied(state.newest),
            }));
        }
        if state.removed_count != state.removed.seq {
            let (through, count) = (state.removed.seq, state.removed_count);
            return Ok(Some(AuditViolation::RemovedByOthers { through, count }));
        }
        Ok(self.anchor.map(AuditViolation::NotAnchored))
    }

    async fn state(&self) -> Result<Result<AuditState, AuditViolation>, StoreError> {
        match self.log.state().await {
            Ok(state) => Ok(state.ok_or(AuditViolation::StateMissing)),
            Err(StoreError::Corrupt(detail)) => Ok(Err(AuditViolation::Unreadable(detail))),
            Err(error) => Err(error),
        }
    }

    /// Verifies an entry against the one before it.
    async fn check(
        &mut self,
        entry: &StoredAuditEntry,
        before: AuditAnchor,
    ) -> Result<Result<AuditAnchor, AuditViolation>, StoreError> {
        let seen = match anchor_of(entry) {
            Ok(seen) => seen,
            Err(violation) => return Ok(Err(violation)),
        };
        if let Err(violation) = follows(entry, before) {
            // Entries before it may have been removed by retention meanwhile.
            let removed = self.state().await?.map(|state| state.removed);
            let was_pruned = removed.is_ok_and(|removed| removed != before && follows(entry, removed).is_ok());
            if !was_pruned {
                let is_first = self.found.newest.is_none();
                return Ok(Err(match violation {
                    AuditViolation::Gap { expected, found } if is_first => {
                        AuditViolation::BeginningMissing { expected, found }
                    }
                    violation => violation,
                }));
            }
        }
        if entry.computed_hash() != Some(seen.hash) {
            return Ok(Err(AuditViolation::Changed(entry.seq)));
        }
        self.found.entries += 1;
        self.found.oldest.get_or_insert(seen.seq);
        self.found.newest = Some(seen);
        self.anchor.take_if(|anchor| *anchor == seen);
        Ok(Ok(seen))
    }
}

fn anchor_of(entry: &StoredAuditEntry) -> Result<AuditAnchor, AuditViolation> {
    let seq = u64::try_from(entry.seq).ok().filter(|seq| *seq > 0);
    let seq = seq.ok_or(AuditViolation::ImpossibleNumber(entry.seq))?;
    let hash = entry.hash.as_slice().try_into().map_err(|_| AuditViolation::Changed(entry.seq))?;
    Ok(AuditAnchor { seq, hash: AuditHash(hash) })
}

fn follows(entry: &StoredAuditEntry, before: AuditAnchor) -> Result<(), AuditViolation> {
    let expected = i64::try_from(before.seq).unwrap_or(i64::MAX).saturating_add(1);
    if entry.seq != expected {
        return Err(AuditViolation::Gap { expected, found: entry.seq });
    }
    if entry.previous_hash != before.hash.0 {
        return Err(AuditViolation::BrokenLink(entry.seq));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
