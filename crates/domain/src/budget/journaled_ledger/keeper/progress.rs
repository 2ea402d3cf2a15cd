//! The progress of a process with the store: numbers, unanswered calls, and the answers to recalls.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::allowances::CounterId;
use crate::budget::{DrawRequest, FoldRequest, Recall, ReturnRequest};
use crate::ids::WorkspaceId;

/// The most entries of one transaction. At most half of them are charges.
const MAX_ENTRIES: usize = 1024;
/// The fewest entries of one transaction, unless there are no more.
const MIN_ENTRIES: usize = 64;
/// The duration of a transaction above which the next one is smaller, if a request waited for a draw meanwhile.
const LONG_FOLD: Duration = Duration::from_millis(20);

/// The time between two answers while allowances of this process are recalled.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// The progress of calls to the store.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of the last draw or return that took effect.
    pub(super) number: u64,
    /// The number of the last folded entry.
    pub(super) folded: u64,
    pub(super) pending: Option<PendingCall>,
    pub(super) pending_fold: Option<FoldBatch>,
    pub(super) batch_size: BatchSize,
    /// Failed attempts to fold an entry that the store rejects as corrupt.
    pub(super) corrupt_folds: u32,
    pub(super) next_signals: Duration,
    pub(super) next_scan: Duration,
    pub(super) next_segments: Duration,
    pub(super) is_registered: bool,
    pub(super) answers: RecallAnswers,
    /// The last followed declaration of an older store.
    pub(super) declared_older_at: Option<DateTime<Utc>>,
}

/// A draw or return without an answer. It is repeated with its number before any other draw or return.
#[derive(Debug)]
pub(super) enum PendingCall {
    Draw(PendingDraw),
    Return(ReturnRequest),
}

/// A draw without an answer.
#[derive(Debug, Clone)]
pub(super) struct PendingDraw {
    pub(super) request: DrawRequest,
    pub(super) owners: HashMap<CounterId, WorkspaceId>,
    /// The number of the last entry that was folded before the draw.
    pub(super) folded: u64,
}

/// Charges that are folded in one transaction, with the numbers of their entries.
#[derive(Debug)]
pub(super) struct FoldBatch {
    pub(super) request: FoldRequest,
    pub(super) sequences: Vec<u64>,
}

/// The most entries of the next transaction. A draw waits for it, so it is short while requests wait and entries belong
/// to many accounts.
#[derive(Debug)]
pub(super) struct BatchSize(pub(super) usize);

impl Default for BatchSize {
    fn default() -> Self {
        Self(MAX_ENTRIES)
    }
}

impl BatchSize {
    /// Halves after a long transaction that a request waited for. Doubles after a short one, and after one that nobody
    /// waited for: a slow store folds best in large transactions.
    pub(super) fn follow(&mut self, took: Duration, is_awaited: bool) {
        if took > LONG_FOLD && is_awaited {
            self.0 = (self.0 / 2).max(MIN_ENTRIES);
        } else if took < LONG_FOLD / 2 || !is_awaited {
            self.0 = (self.0 * 2).min(MAX_ENTRIES);
        }
    }
}

/// The last answers to recalls, which tell the store that this process has no free amount left. Durations are monotonic times.
#[derive(Debug, Default)]
pub(super) struct RecallAnswers {
    /// The time of the last answered signals, by the clock of the store.
    answered: Option<DateTime<Utc>>,
    sent_at: Duration,
}

impl RecallAnswers {
    /// Records that the store has just seen the process.
    pub(super) fn registered(&mut self, now: Duration) {
        self.sent_at = now;
    }

    /// Returns true if an answer is due: at once for a new recall of `own` allowances, every second for an older one,
    /// and without a recall by the heartbeat.
    pub(super) fn is_due(&self, own: &[Recall], now: Duration, heartbeat: Duration) -> bool {
        let silent_for = now.saturating_sub(self.sent_at);
        let is_new = |recall: &Recall| self.answered.is_none_or(|answered| recall.began_at > answered);
        own.iter().any(is_new) || (!own.is_empty() && silent_for >= ANSWER_EVERY) || silent_for >= heartbeat
    }

    /// Records that signals of a time were answered.
    pub(super) fn sent(&mut self, at: DateTime<Utc>, now: Duration) {
        self.answered = Some(at);
        self.sent_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Account;
    use crate::budget::allowances::CounterPeriod;

    const HEARTBEAT: Duration = Duration::from_secs(30);

    fn recall(second: i64) -> Recall {
        let account = Account::Workspace(WorkspaceId::from_uuid(uuid::Uuid::from_u128(1)));
        let counter = CounterId { account, period: CounterPeriod::Lifetime };
        Recall { counter, began_at: DateTime::from_timestamp(second, 0).unwrap() }
    }

    #[test]
    fn answer_is_due_at_once_for_a_new_recall_then_every_second_then_by_heartbeat() {
        let mut answers = RecallAnswers::default();
        let second = Duration::from_secs;
        answers.registered(second(10));
        assert!(!answers.is_due(&[], second(39), HEARTBEAT));
        assert!(answers.is_due(&[], second(40), HEARTBEAT));
        assert!(answers.is_due(&[recall(100)], second(10), HEARTBEAT), "nothing was answered yet");
        answers.sent(recall(101).began_at, second(11));
        let almost = second(12).saturating_sub(Duration::from_millis(1));
        assert!(!answers.is_due(&[recall(100), recall(101)], almost, HEARTBEAT));
        assert!(answers.is_due(&[recall(100), recall(102)], almost, HEARTBEAT));
        assert!(answers.is_due(&[recall(100)], second(12), HEARTBEAT));
        assert!(!answers.is_due(&[], second(40), HEARTBEAT));
    }

    #[test]
    fn batch_size_follows_duration_of_transactions() {
        let mut size = BatchSize::default();
        size.follow(Duration::from_millis(15), true);
        assert_eq!(size.0, MAX_ENTRIES);
        size.follow(Duration::from_millis(21), true);
        assert_eq!(size.0, MAX_ENTRIES / 2);
        (0..20).for_each(|_| size.follow(Duration::from_secs(1), true));
        assert_eq!(size.0, MIN_ENTRIES);
        size.follow(Duration::from_millis(9), true);
        assert_eq!(size.0, MIN_ENTRIES * 2);
        (0..20).for_each(|_| size.follow(Duration::ZERO, true));
        assert_eq!(size.0, MAX_ENTRIES);
        size.follow(Duration::from_secs(1), true);
        size.follow(Duration::from_secs(1), false);
        assert_eq!(size.0, MAX_ENTRIES, "nobody waited");
    }
}
