//! The ends of requests in the journal: charges and releases.

use super::calls::{ChargeError, journal_failed, lock};
use super::omission::Omission;
use super::{JournaledLedger, amounts, check_amount};
use crate::budget::entries::{encode_charged, encode_released};
use crate::budget::{EntryKind, UsageCharge, UsageJournalError};
use crate::error::StoreError;
use crate::ids::{DecisionId, WorkspaceId};
use crate::money::Usd;

impl JournaledLedger {
    /// Appends a charge and ends the hold of its request. Returns the number of the entry.
    pub(super) fn append_charge(&self, mut charge: UsageCharge) -> Result<u64, ChargeError> {
        check_amount(charge.record.cost)?;
        let (id, cost) = (charge.record.id.clone(), charge.record.cost);
        if charge.record.trace.is_some() && self.is_journal_above_half() {
            charge.record.trace = None;
            self.count_omitted_trace();
        }
        let open = self.state.calls.remove(&id);
        let money = self.state.workspaces.get(charge.record.workspace_id);
        let mut money = lock(&money);
        let mut allowances = Vec::new();
        if let Some(open) = &open {
            let costs = amounts(&open.counters, cost);
            let parts = money.allowances.begin_charge(&id, self.time.monotonic(), &costs);
            let parts = parts.map_err(|error| StoreError::Corrupt(error.to_string()))?;
            let borne = parts.iter().filter(|part| part.from_allowance > Usd::ZERO);
            allowances.extend(borne.map(|part| (part.counter, part.from_allowance)));
        }
        let reserved = open.as_ref().map_or(0, |open| open.reserved_bytes);
        let append = |charge: &UsageCharge| {
            self.journal.append_end(EntryKind::Charged, &encode_charged(charge, &allowances), reserved)
        };
        let mut appended = append(&charge);
        for omission in Omission::ALL {
            let Err(UsageJournalError::TooLarge { bytes, max_bytes }) = appended else { break };
            let has_trace = charge.record.trace.is_some();
            if !omission.apply(&mut charge) {
                continue;
            }
            if has_trace && charge.record.trace.is_none() {
                self.count_omitted_trace();
            }
            let omitted = omission.as_str();
            tracing::warn!(decision.id = %id, bytes, max_bytes, omitted, "charge shortened to fit into the journal");
            appended = append(&charge);
        }
        let sequence = match &appended {
            Ok(sequence) | Err(UsageJournalError::Retained { sequence, .. }) => Some(*sequence),
            Err(_) => None,
        };
        if let (Some(sequence), Some(_)) = (sequence, &open) {
            money.allowances.finish_charge(&id, sequence).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        }
        appended.map_err(|error| match error {
            UsageJournalError::Sealed => ChargeError::Sealed(Box::new(charge)),
            error => ChargeError::Store(journal_failed(error)),
        })
    }

    /// Ends a request for which nothing is charged, if it is open.
    pub(super) fn end_without_charge(&self, id: &DecisionId) {
        if let Some(open) = self.state.calls.remove(id) {
            self.append_release(open.hold.payer.workspace_id, id, open.sequence, open.reserved_bytes);
        }
    }

    /// Appends the end of a request without a charge.
    pub(super) fn append_release(&self, workspace: WorkspaceId, id: &DecisionId, sent: u64, reserved_bytes: usize) {
        let money = self.state.workspaces.get(workspace);
        let mut money = lock(&money);
        if money.allowances.begin_charge(id, self.time.monotonic(), &[]).is_err() {
            return;
        }
        let sequence = match self.journal.append_end(EntryKind::Released, &encode_released(id), reserved_bytes) {
            Ok(sequence) | Err(UsageJournalError::Retained { sequence, .. }) => sequence,
            Err(error) => {
                tracing::warn!(decision.id = %id, sent, error = &error as &dyn std::error::Error, "release not recorded");
                return;
            }
        };
        money.allowances.finish_charge(id, sequence).ok();
    }

    /// Returns true if the journal is more than half full: the rest is for charges, and traces are left out.
    fn is_journal_above_half(&self) -> bool {
        let status = self.journal.status();
        status.unfolded_bytes > status.max_bytes / 2
    }

    fn count_omitted_trace(&self) {
        if self.state.omitted_traces.add(self.time.monotonic()) {
            let (omitted, status) = (self.state.omitted_traces.count(), self.journal.status());
            let (unfolded_bytes, max_bytes) = (status.unfolded_bytes, status.max_bytes);
            tracing::warn!(omitted, unfolded_bytes, max_bytes, "usage records go without their trace");
        }
    }

    /// Returns the number of records without their trace: the journal was filling up, or the record was too large.
    pub fn omitted_traces(&self) -> u64 {
        self.state.omitted_traces.count()
    }
}
