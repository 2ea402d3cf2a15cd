//! Charging what waited for the store.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};

use super::backlog::{CORRUPT, Shared, Unwritten};
use super::{Backlog, Ledger};
use crate::error::StoreError;
use crate::money::Usd;
use crate::observability::Meter;
use crate::system::Timer;
use crate::usage::UsageRecord;

/// The wait after the first failure; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait: much less than a lease, so that what is reserved is nearly always charged exactly at once.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Settlements that are written at once when the store is known to be there, and so share transactions.
const TOGETHER: usize = 128;

/// Writes what is in a [`Backlog`], again and again until the store takes it. The ledger charges an id once, whoever
/// else ended its reservation and however often it was tried.
pub struct SettleBacklog {
    backlog: Arc<Shared>,
    ledger: Arc<dyn Ledger>,
    meter: Arc<dyn Meter>,
    timer: Arc<dyn Timer>,
}

impl SettleBacklog {
    /// Wires the ports. A backlog has one writer.
    pub fn new(backlog: &Backlog, ledger: Arc<dyn Ledger>, meter: Arc<dyn Meter>, timer: Arc<dyn Timer>) -> Self {
        Self { backlog: backlog.shared(), ledger, meter, timer }
    }

    /// Writes until nobody holds the backlog any more and all of it is written; at the latest `patience` after `stopped`
    /// ended. What waits then is lost, and the log says what.
    pub async fn run(&self, stopped: impl Future<Output = ()>, patience: Duration) {
        let over = async {
            stopped.await;
            self.backlog.hurry();
            self.timer.sleep(patience).await;
        };
        select(pin!(over), pin!(self.write())).await;
        self.backlog.give_up();
    }

    async fn write(&self) {
        let mut failures = 0;
        while self.backlog.something().await {
            match self.write_what_waits().await {
                Round::Done => failures = 0,
                Round::InPart => failures = 1,
                Round::Failed => failures = u32::saturating_add(failures, 1),
            }
            if failures > 0 {
                self.rest(failures).await;
            }
        }
    }

    /// Where there is not much time left, the waits are no longer than the first one.
    async fn rest(&self, failures: u32) {
        if self.backlog.is_urgent() {
            return self.timer.sleep(FIRST_WAIT).await;
        }
        let doublings = failures.saturating_sub(1).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
        select(self.timer.sleep(wait), pin!(self.backlog.urgent())).await;
    }

    /// One settlement says whether the store is back; the others follow together.
    async fn write_what_waits(&self) -> Round {
        let mut at_once = 1;
        let mut round = Round::Failed;
        loop {
            let some = self.backlog.first(at_once);
            if some.is_empty() {
                return Round::Done;
            }
            let settled = join_all(some.iter().map(|one| self.ledger.settle(one.settlement.clone()))).await;
            let mut are_all_over = true;
            for (unwritten, settled) in some.iter().zip(settled) {
                if self.is_over(unwritten, settled) {
                    round = Round::InPart;
                } else {
                    are_all_over = false;
                }
            }
            if !are_all_over {
                return round;
            }
            at_once = TOGETHER;
        }
    }

    /// True where it waits no more.
    fn is_over(&self, unwritten: &Unwritten, settled: Result<(), StoreError>) -> bool {
        let record = &unwritten.settlement.record;
        match settled {
            Ok(()) => {
                let waiting = self.backlog.written(&record.id);
                tracing::info!(
                    decision.id = %record.id,
                    cost_usd = %record.cost,
                    waiting,
                    "a settlement that waited for the store is written"
                );
                charged(&*self.meter, record, unwritten.reserved);
                true
            }
            Err(StoreError::Corrupt(_)) if !unwritten.may_be_tried_again() => {
                self.backlog.lost(&record.id);
                unwritten.tell_of_loss(CORRUPT);
                true
            }
            Err(error) => {
                self.backlog.postpone(&record.id);
                let error: &dyn std::error::Error = &error;
                tracing::debug!(decision.id = %record.id, error, "a settlement still waits for the store");
                false
            }
        }
    }
}

/// What became of what waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Nothing waits any more.
    Done,
    /// Some of it was written.
    InPart,
    /// The store is still away.
    Failed,
}

/// Counts a record that is charged, and tells of one that went beyond what was reserved for it.
pub(crate) fn charged(meter: &dyn Meter, record: &UsageRecord, reserved: Option<Usd>) {
    if let Some(reserved) = reserved.filter(|reserved| record.cost > *reserved) {
        tracing::warn!(
            decision.id = %record.id,
            reserved_usd = %reserved,
            cost_usd = %record.cost,
            "a charge went beyond what was reserved: a provider counts more tokens than money.token_factor allows for"
        );
        meter.beyond_bound();
    }
    meter.settled(record);
}

#[cfg(test)]
mod tests;
