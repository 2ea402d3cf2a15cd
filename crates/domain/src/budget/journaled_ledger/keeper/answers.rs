//! Answers to recalls, which tell the store that this process has no free amount left.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::budget::Recall;

/// The time between two answers while allowances of this process are recalled.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// The last answers of a process. Durations are monotonic times.
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
    use crate::budget::allowances::{CounterId, CounterPeriod};
    use crate::ids::WorkspaceId;

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
}
