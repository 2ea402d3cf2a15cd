//! The record of an id that may still be on its way to the store.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{PendingRecords, UsageRecord, UsageRepository};
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::system::{Clock, Timer};

/// The age of an id from which on its record is in the store of every process that works.
const RECENT: TimeDelta = TimeDelta::seconds(2);
/// The time in which another process folds a charge.
const WAIT: Duration = Duration::from_millis(500);
/// The time between two looks.
const STEP: Duration = Duration::from_millis(25);

/// Finds records, also those that were charged a moment ago.
pub struct FindRecord {
    usage: Arc<dyn UsageRepository>,
    pending: Option<Arc<dyn PendingRecords>>,
    clock: Arc<dyn Clock>,
    timer: Arc<dyn Timer>,
}

impl FindRecord {
    /// Wires the ports. `pending` stores the charges of this process, where it makes any.
    pub fn new(
        usage: Arc<dyn UsageRepository>,
        pending: Option<Arc<dyn PendingRecords>>,
        clock: Arc<dyn Clock>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        Self { usage, pending, clock, timer }
    }

    /// The record of an id. A record that another process has charged a moment ago is waited for.
    pub async fn execute(&self, id: &DecisionId) -> Result<Option<UsageRecord>, StoreError> {
        if let Some(record) = self.usage.find(id).await? {
            return Ok(Some(record));
        }
        if !is_recent(id, self.clock.now()) {
            return Ok(None);
        }
        if let Some(pending) = &self.pending {
            pending.store_pending().await?;
        }
        let began = self.clock.monotonic();
        loop {
            let found = self.usage.find(id).await?;
            if found.is_some() || self.clock.monotonic().saturating_sub(began) >= WAIT {
                return Ok(found);
            }
            self.timer.sleep(STEP).await;
        }
    }
}

/// True where the id was made within the last two seconds. Ids carry the time in their first 48 bits, in milliseconds.
fn is_recent(id: &DecisionId, now: DateTime<Utc>) -> bool {
    let digits = id.as_str().strip_prefix(DecisionId::PREFIX).and_then(|digits| digits.get(..12));
    let millis = digits.and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let made = millis.and_then(DateTime::from_timestamp_millis);
    made.is_some_and(|made| (now - made).abs() < RECENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use uuid::Uuid;

    #[rstest]
    #[case(0, true)]
    #[case(1_999, true)]
    #[case(-1_999, true)]
    #[case(2_000, false)]
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
