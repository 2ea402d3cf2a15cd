//! The fold: charges from the journal to the store.

use super::super::calls::{journal_failed, lock};
use super::Keeper;
use super::progress::FoldBatch;
use crate::budget::entries::Entry;
use crate::budget::{BudgetStoreError, EntryKind, FoldEntry, FoldRequest};
use crate::error::StoreError;

/// The most bytes of journal entries of one transaction.
const MAX_BYTES: usize = 1 << 20;
/// The attempts to fold an entry that the store rejects as corrupt. A table that is briefly missing looks the same.
const CORRUPT_TRIES: u32 = 256;

impl Keeper {
    /// Folds the oldest entries. Returns false if there are none. A batch without an answer is repeated unchanged.
    pub(super) async fn fold_next(&mut self) -> Result<bool, StoreError> {
        if self.progress.pending_fold.is_none() {
            self.progress.pending_fold = self.next_batch()?;
        }
        let Some(batch) = &self.progress.pending_fold else { return Ok(false) };
        let began = self.clock.monotonic();
        match self.store.fold(&batch.request).await {
            Ok(()) => {
                let took = self.clock.monotonic().saturating_sub(began);
                self.progress.batch_size.follow(took, self.state.asks.has_waiting());
                self.finish_fold();
            }
            Err(BudgetStoreError::Store(StoreError::Corrupt(reason))) => self.narrow_fold(reason)?,
            Err(error) => return Err(self.store_failed(error)),
        }
        Ok(true)
    }

    fn next_batch(&self) -> Result<Option<FoldBatch>, StoreError> {
        let waiting = self.journal.unfolded(self.progress.batch_size.0, MAX_BYTES).map_err(journal_failed)?;
        let Some(last) = waiting.last() else { return Ok(None) };
        let mut batch = FoldBatch {
            request: FoldRequest {
                process: self.journal.process(),
                after: self.progress.folded,
                up_to: last.sequence,
                entries: Vec::new(),
            },
            sequences: Vec::new(),
        };
        // Only charges are folded. Other entries serve recovery.
        for entry in waiting.iter().filter(|entry| entry.kind == EntryKind::Charged as u8) {
            match Entry::decode(entry.kind, &entry.payload) {
                Ok(Entry::Charged(charged)) => {
                    batch.request.entries.push(*charged);
                    batch.sequences.push(entry.sequence);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(sequence = entry.sequence, %error, "journal entry of this process not readable");
                }
            }
        }
        Ok(Some(batch))
    }

    fn finish_fold(&mut self) {
        let Some(FoldBatch { request, .. }) = self.progress.pending_fold.take() else { return };
        for FoldEntry { charge, allowances } in request.entries {
            if !allowances.is_empty() {
                let money = self.state.workspaces.get(charge.record.workspace_id);
                lock(&money).allowances.folded(allowances);
            }
        }
        self.progress.folded = request.up_to;
        self.progress.corrupt_folds = 0;
        self.journal.remove_folded(request.up_to);
    }

    /// Halves the batch after the store rejected it as corrupt, until the corrupt entry is found.
    fn narrow_fold(&mut self, reason: String) -> Result<(), StoreError> {
        let Some(batch) = &mut self.progress.pending_fold else { return Ok(()) };
        let count = batch.sequences.len();
        if count > 1 {
            batch.request.entries.truncate(count / 2);
            batch.sequences.truncate(count / 2);
            // Later entries are read again.
            batch.request.up_to = batch.sequences.last().copied().unwrap_or(batch.request.up_to);
            return Ok(());
        }
        self.progress.corrupt_folds += 1;
        if count == 0 || self.progress.corrupt_folds < CORRUPT_TRIES {
            return Err(StoreError::Corrupt(reason));
        }
        for entry in std::mem::take(&mut batch.request.entries) {
            let record = &entry.charge.record;
            tracing::error!(
                decision.id = %record.id,
                workspace.id = %record.workspace_id,
                api_key.id = %record.api_key,
                cost_usd = %record.cost,
                reason,
                "charge not folded: it contradicts stored data; charge it manually"
            );
            // The process keeps the allowance until it ends, so that the limit holds.
        }
        batch.sequences.clear();
        Ok(())
    }
}
