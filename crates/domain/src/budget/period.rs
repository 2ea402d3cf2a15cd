//! Calendar periods in UTC.

use std::time::Duration;

use chrono::{DateTime, Datelike, Days, Months, NaiveTime, TimeDelta, Utc};

/// A calendar period in UTC; weeks start on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResetInterval {
    /// From midnight to midnight.
    Daily,
    /// From Monday to Monday.
    Weekly,
    /// From the first to the first.
    Monthly,
}

impl ResetInterval {
    /// All intervals, shortest first.
    pub const ALL: [Self; 3] = [Self::Daily, Self::Weekly, Self::Monthly];

    /// Returns the name in API and configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
        }
    }

    /// Returns the interval with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interval| interval.as_str() == name)
    }

    /// Returns the beginning of the period that contains `at`.
    pub fn start_of(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let day = at.date_naive();
        let first = match self {
            Self::Daily => Some(day),
            Self::Weekly => day.checked_sub_days(Days::new(day.weekday().num_days_from_monday().into())),
            Self::Monthly => day.with_day(1),
        };
        // Such a day is missing only before the first representable year.
        first.unwrap_or(day).and_time(NaiveTime::MIN).and_utc()
    }

    /// Returns the end of the period that contains `at`.
    pub fn end_of(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let start = self.start_of(at).date_naive();
        let next = match self {
            Self::Daily => start.checked_add_days(Days::new(1)),
            Self::Weekly => start.checked_add_days(Days::new(7)),
            Self::Monthly => start.checked_add_months(Months::new(1)),
        };
        next.unwrap_or(start).and_time(NaiveTime::MIN).and_utc()
    }
}

/// The longest time of a running request: retention keeps the periods that were current within this time.
const LONGEST_REQUEST: TimeDelta = TimeDelta::hours(1);

/// Returns the time before which charged records may be removed, if they are kept for `older_than`.
///
/// Records of the current day, week and month stay, because limits count them. So do records of periods that were
/// current an hour ago, because a request of that time may still increase its hold.
pub fn prunable_before(now: DateTime<Utc>, older_than: Duration) -> DateTime<Utc> {
    let old = TimeDelta::from_std(older_than).ok().and_then(|age| now.checked_sub_signed(age));
    let needed = now.checked_sub_signed(LONGEST_REQUEST).unwrap_or(now);
    let running = ResetInterval::ALL.map(|interval| interval.start_of(needed));
    running.into_iter().fold(old.unwrap_or(DateTime::<Utc>::MIN_UTC), DateTime::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[rstest]
    #[case(ResetInterval::Daily, "2026-11-21T19:20:20Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2026-11-21T19:20:20Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case(ResetInterval::Weekly, "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z")]
    #[case(ResetInterval::Monthly, "2028-02-29T23:59:59.999Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z")]
    #[case(ResetInterval::Monthly, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z")]
    fn periods_are_calendar_periods(
        #[case] interval: ResetInterval,
        #[case] at: &str,
        #[case] start: &str,
        #[case] end: &str,
    ) {
        assert_eq!((interval.start_of(utc(at)), interval.end_of(utc(at))), (utc(start), utc(end)));
    }
}
