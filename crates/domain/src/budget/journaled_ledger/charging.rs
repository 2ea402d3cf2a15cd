//! The ends of requests in the journal: charges and releases.

use std::borrow::Cow;

use super::calls::{ChargeError, journal_failed, lock};
use super::omission::Omission;
use super::{JournaledLedger, amounts, check_amount};
use crate::budget::entries::{encode_charged, encode_released};
use crate::budget::{EntryKind, UsageCharge, UsageJournalError};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::money::Usd;
use crate::usage::UsageRecord;

impl JournaledLedger {
    /// Appends a charge and ends the hold of its request. Returns the number of the entry.
    pub(super) fn append_charge(&self, charge: &UsageCharge) -> Result<u64, ChargeError> {
        let UsageRecord { id, cost, workspace_id, .. } = &charge.record;
        check_amount(*cost)?;
        let mut charge = Cow::Borrowed(charge);
        if charge.record.trace.is_some() && self.is_journal_above_half() {
            charge.to_mut().record.trace = None;
            self.count_omitted_trace();
        }
        let open = self.state.calls.remove(id);
        let money = open.as_ref().filter(|open| open.is_limited()).map(|_| self.state.workspaces.get(*workspace_id));
        let mut money = money.as_deref().map(lock);
        let mut allowances = Vec::new();
        if let (Some(open), Some(money)) = (&open, &mut money) {
            let costs = amounts(&open.counters, *cost);
            let parts = money.allowances.begin_charge(id, self.time.monotonic(), &costs);
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
            if !omission.apply(charge.to_mut()) {
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
        if let (Some(sequence), Some(money)) = (sequence, &mut money) {
            money.allowances.finish_charge(id, sequence).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        }
        appended.map_err(|error| match error {
            UsageJournalError::Sealed => ChargeError::Sealed,
            error => ChargeError::Store(journal_failed(error)),
        })
    }

    /// Ends a request for which nothing is charged, if it is open.
    pub(super) fn end_without_charge(&self, id: &DecisionId) {
        let Some(open) = self.state.calls.remove(id) else { return };
        let money = open.is_limited().then(|| self.state.workspaces.get(open.hold.payer.workspace_id));
        let mut money = money.as_deref().map(lock);
        if let Some(money) = &mut money
            && money.allowances.begin_charge(id, self.time.monotonic(), &[]).is_err()
        {
            return;
        }
        let sequence = match self.journal.append_end(EntryKind::Released, &encode_released(id), open.reserved_bytes) {
            Ok(sequence) | Err(UsageJournalError::Retained { sequence, .. }) => sequence,
            Err(error) => {
                let (sent, error) = (open.sequence, &error as &dyn std::error::Error);
                tracing::warn!(decision.id = %id, sent, error, "release not recorded");
                return;
            }
        };
        if let Some(money) = &mut money {
            money.allowances.finish_charge(id, sequence).ok();
        }
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
