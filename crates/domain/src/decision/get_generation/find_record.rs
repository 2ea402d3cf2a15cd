//! Finds usage records that may not be stored yet.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::budget::LedgerReader;
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::system::{Clock, Timer};
use crate::usage::{UsageRecord, UsageRepository};

/// The age from which on a record is stored, whichever running process charged it. An id is made when its request
/// begins, and a request may run for minutes.
const RECENT_AGE: TimeDelta = TimeDelta::minutes(10);
/// The time within which another process stores a charge.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// The interval of the polls.
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Finds records, including those whose charge is not stored yet.
pub struct FindRecord {
    usage: Arc<dyn UsageRepository>,
    ledger: Arc<dyn LedgerReader>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

impl FindRecord {
    /// Wires the ports. `ledger` stores the charges of this process.
    pub fn new(
        usage: Arc<dyn UsageRepository>,
        ledger: Arc<dyn LedgerReader>,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        Self { usage, ledger, clock, timer }
    }

    /// Returns the record of an id. Waits for a recent record that another process may still have to store.
    pub async fn execute(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        if let Some(record) = self.usage.find(id).await? {
            return Ok(Some(record));
        }
        if !is_recent(id, self.clock.now()) {
            return Ok(None);
        }
        self.ledger.store_pending().await?;
        let began = self.clock.monotonic();
        loop {
            let found = self.usage.find(id).await?;
            if found.is_some() || self.clock.monotonic().saturating_sub(began) >= MAX_WAIT {
                return Ok(found);
            }
            self.timer.sleep(POLL_INTERVAL).await;
        }
    }
}

/// Returns true if the id is younger than [`RECENT_AGE`]. The first 48 bits of an id are its time in milliseconds.
fn is_recent(id: &DecisionId, now: DateTime<Utc>) -> bool {
    let digits = id.as_str().strip_prefix(DecisionId::PREFIX).and_then(|digits| digits.get(..12));
    let millis = digits.and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let made = millis.and_then(DateTime::from_timestamp_millis);
    made.is_some_and(|made| (now - made).abs() < RECENT_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use uuid::Uuid;

    #[rstest]
    #[case(0, true)]
    #[case(599_999, true)]
    #[case(-599_999, true)]
    #[case(600_000, false)]
    #[case(3_600_000, false)]
    fn is_recent_compares_id_timestamp(#[case] age_ms: i64, #[case] expected: bool) {
        let made = DateTime::from_timestamp_millis(1_795_000_000_123).unwrap();
        let id = DecisionId::from_uuid(Uuid::from_u128(1_795_000_000_123 << 80));
        assert_eq!(is_recent(&id, made + TimeDelta::milliseconds(age_ms)), expected);
    }

    #[test]
    fn is_recent_rejects_ids_without_timestamp() {
        for id in ["gen-dec-x", "gen-dec-zzzzzzzzzzzzzzzz", "gen-dec-ffffffffffffffff"] {
            assert!(!is_recent(&id.parse().unwrap(), DateTime::UNIX_EPOCH + TimeDelta::days(20_000)), "{id}");
        }
    }
}
