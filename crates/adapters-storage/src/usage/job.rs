//! What waits for the writer.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::budget::{Claim, Overspent, Payer, Reservation, Settlement};
use domain::error::StoreError;
use domain::ids::DecisionId;
use domain::money::Usd;
use domain::observability::OutboxMessage;
use domain::usage::{AttemptRecord, UsageOutcome, UsageRecord};
use tokio::sync::oneshot;

use super::{held, row};
use crate::entities::{reservations, usage_records};

/// What is to be done, and whoever waits for it.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) answer: oneshot::Sender<Result<Outcome, StoreError>>,
}

/// What is to be done. Rows are made before they wait, so that the writer only writes.
pub(super) enum Work {
    Settle(Box<Charge>),
    Release(DecisionId),
    Reserve(Box<Ask>),
    Extend(Box<Extension>),
}

/// What was done.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Done,
    Reserved(Reservation),
    Refused(Overspent),
}

/// A record to be charged.
pub(super) struct Charge {
    pub(super) row: usage_records::Model,
    pub(super) payer: Payer,
    pub(super) at: DateTime<Utc>,
    pub(super) cost: Usd,
    /// The bytes that the record takes.
    pub(super) bytes: u64,
    pub(super) messages: Vec<OutboxMessage>,
}

/// A reservation to be made.
pub(super) struct Ask {
    pub(super) id: DecisionId,
    pub(super) payer: Payer,
    pub(super) amount: Usd,
    pub(super) lease: Duration,
    pub(super) row: reservations::Model,
}

/// A reservation to be made larger.
pub(super) struct Extension {
    pub(super) id: DecisionId,
    pub(super) more: Usd,
    pub(super) attempts: Vec<AttemptRecord>,
}

fn not_negative(amount: Usd) -> Result<(), StoreError> {
    if amount < Usd::ZERO {
        return Err(StoreError::Corrupt("a negative amount is neither reserved nor charged".to_owned()));
    }
    Ok(())
}

impl Charge {
    pub(super) fn of(settlement: Settlement) -> Result<Self, StoreError> {
        let Settlement { record, messages } = settlement;
        not_negative(record.cost)?;
        let (payer, at, cost) = (payer_of(&record), record.charged_at, record.cost);
        let bytes = record.stored_bytes();
        Ok(Self { row: row::to_row(record)?, payer, at, cost, bytes, messages })
    }

    /// True where it was charged for want of anybody who knew better.
    pub(super) fn is_abandoned(&self) -> bool {
        self.row.outcome == UsageOutcome::Abandoned.as_str()
    }
}

impl Ask {
    pub(super) fn of(claim: Claim) -> Result<Self, StoreError> {
        not_negative(claim.amount)?;
        let row = held::to_row(&claim)?;
        Ok(Self { row, id: claim.id, payer: claim.payer, amount: claim.amount, lease: claim.lease })
    }
}

impl Extension {
    pub(super) fn of(id: &DecisionId, more: Usd, attempts: &[AttemptRecord]) -> Result<Self, StoreError> {
        not_negative(more)?;
        Ok(Self { id: id.clone(), more, attempts: attempts.to_vec() })
    }
}

pub(super) fn payer_of(record: &UsageRecord) -> Payer {
    Payer { workspace_id: record.workspace_id, api_key: record.api_key, guardrails: record.guardrails.clone() }
}

impl Work {
    /// Charges and releases come first: they make room for what is asked in the same batch.
    pub(super) fn makes_room(&self) -> bool {
        matches!(self, Self::Settle(_) | Self::Release(_))
    }
}

impl Job {
    /// A reservation that nobody waits for any more would only stand in the way; a charge has to be made all the same.
    pub(super) fn is_pointless(&self) -> bool {
        !self.work.makes_room() && self.answer.is_closed()
    }
}
