//! Denied changes, counted so that no caller can flood the log.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use super::{Actor, AuditDraft, AuditOutcome};
use crate::json::ObjectWriter;

/// A denied change of an authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedChange {
    /// The actor and its address.
    pub actor: Actor,
    /// Method and pattern of the route, such as `DELETE /guardrails/{id}`. MUST come from a fixed list.
    pub route: String,
    /// The HTTP status of the answer.
    pub status: u16,
}

/// Records denied changes. MUST NOT wait.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait DeniedChangeRecorder: Send + Sync {
    /// Records a denied change.
    fn record(&self, denial: DeniedChange);
}

/// The action of audit entries on denied changes.
const ACTION: &str = "request.denied";
/// The most addresses that an entry lists.
const MAX_SOURCES: usize = 8;
/// The most keys and routes that are counted separately.
const MAX_KEYS: usize = 1000;

/// Counts of denied changes by minute, key and route, in bounded memory.
#[derive(Debug, Default)]
pub struct DeniedChangeCounter {
    counts: BTreeMap<CountKey, Count>,
}

/// The key of a count. Without a subject it counts everything above [`MAX_KEYS`] in its minute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CountKey {
    minute: DateTime<Utc>,
    subject: Option<(String, String)>,
}

#[derive(Debug, Default)]
struct Count {
    denials: u64,
    by_status: BTreeMap<u16, u64>,
    sources: Vec<String>,
    more_sources: bool,
}

impl DeniedChangeCounter {
    /// Counts a denied change at a time.
    pub fn record(&mut self, denial: DeniedChange, at: DateTime<Utc>) {
        let minute = minute_of(at);
        let DeniedChange { actor, route, status } = denial;
        let mut key = CountKey { minute, subject: Some((actor.name, route)) };
        if self.counts.len() >= MAX_KEYS && !self.counts.contains_key(&key) {
            key.subject = None;
        }
        let count = self.counts.entry(key).or_default();
        count.denials = count.denials.saturating_add(1);
        let of_status = count.by_status.entry(status).or_default();
        *of_status = of_status.saturating_add(1);
        if let Some(source) = actor.source.filter(|source| !count.sources.contains(source)) {
            if count.sources.len() < MAX_SOURCES {
                count.sources.push(source);
            } else {
                count.more_sources = true;
            }
        }
    }

    /// Removes the counts of past minutes and returns their entries, oldest first.
    pub fn take_finished(&mut self, now: DateTime<Utc>) -> Vec<AuditDraft> {
        let current = CountKey { minute: minute_of(now), subject: None };
        let current_counts = self.counts.split_off(&current);
        drafts(std::mem::replace(&mut self.counts, current_counts))
    }

    /// Removes all counts and returns their entries.
    pub fn take_all(&mut self) -> Vec<AuditDraft> {
        drafts(std::mem::take(&mut self.counts))
    }
}

fn minute_of(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

fn drafts(counts: BTreeMap<CountKey, Count>) -> Vec<AuditDraft> {
    counts.into_iter().map(|(key, count)| draft(key, &count)).collect()
}

/// Creates an audit entry. A single address becomes the actor's source; several are listed.
fn draft(key: CountKey, count: &Count) -> AuditDraft {
    let (name, subject) = match key.subject {
        Some((name, route)) => (name, route),
        None => ("others".to_owned(), "various routes".to_owned()),
    };
    let alone = count.sources.len() == 1;
    let by_status = ObjectWriter::new();
    let by_status =
        count.by_status.iter().fold(by_status, |all, (status, denials)| all.shown(&status.to_string(), denials));
    let mut details = ObjectWriter::new()
        .shown("count", count.denials)
        .text("minute", key.minute.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
        .json("statuses", &by_status.end());
    if !alone && !count.sources.is_empty() {
        details = details.texts("addresses", &count.sources);
    }
    if count.more_sources {
        details = details.shown("more_addresses", true);
    }
    AuditDraft {
        actor: Actor { name, source: count.sources.first().filter(|_| alone).cloned() },
        action: ACTION,
        subject,
        outcome: AuditOutcome::Denied,
        details: details.finish(),
        repetition: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_040, 0).unwrap() + TimeDelta::seconds(seconds)
    }

    fn denial(key: &str, address: &str, status: u16) -> DeniedChange {
        let actor = Actor { name: format!("key:{key}"), source: Some(address.to_owned()) };
        DeniedChange { actor, route: "DELETE /guardrails/{id}".to_owned(), status }
    }

    #[test]
    fn counter_returns_one_entry_per_minute_under_flood() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..100_000_u64 {
            counter.record(
                denial("a", "10.0.0.1", if number % 4 == 0 { 403 } else { 404 }),
                at(i64::try_from(number).unwrap() / 1000),
            );
        }
        let drafts = counter.take_all();
        assert_eq!(drafts.len(), 2, "100 seconds are two minutes");
        let first = &drafts[0];
        assert_eq!(first.actor, Actor { name: "key:a".to_owned(), source: Some("10.0.0.1".to_owned()) });
        assert_eq!((first.action, first.outcome), ("request.denied", AuditOutcome::Denied));
        assert_eq!(first.subject, "DELETE /guardrails/{id}");
        let expected = r#"{"count":60000,"minute":"2026-09-21T14:14:00Z","statuses":{"403":15000,"404":45000}}"#;
        assert_eq!(first.details.text(), expected);
        assert!(drafts[1].details.text().contains(r#""count":40000"#));
        assert!(counter.take_all().is_empty());
    }

    #[test]
    fn counter_separates_keys_routes_and_minutes() {
        let mut counter = DeniedChangeCounter::default();
        counter.record(denial("a", "::1", 403), at(0));
        counter.record(denial("b", "::1", 403), at(1));
        counter.record(DeniedChange { route: "POST /guardrails".to_owned(), ..denial("a", "::1", 400) }, at(2));
        counter.record(denial("a", "::1", 403), at(60));
        assert_eq!(counter.take_finished(at(59)).len(), 0, "the minute is not over");
        assert_eq!(counter.take_finished(at(60)).len(), 3);
        assert_eq!(counter.take_all().len(), 1);
    }

    #[test]
    fn entry_lists_several_addresses_up_to_a_maximum() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..3 {
            counter.record(denial("a", &format!("10.0.0.{number}"), 409), at(0));
        }
        let drafts = counter.take_all();
        assert_eq!(drafts[0].actor.source, None);
        assert!(drafts[0].details.text().ends_with(r#","addresses":["10.0.0.0","10.0.0.1","10.0.0.2"]}"#));
        for number in 0..1000 {
            counter.record(denial("a", &format!("10.0.0.{number}"), 409), at(0));
        }
        let drafts = counter.take_all();
        assert_eq!(drafts.len(), 1);
        assert!(
            drafts[0].details.text().ends_with(r#""10.0.0.7"],"more_addresses":true}"#),
            "{}",
            drafts[0].details.text()
        );
    }

    #[test]
    fn counter_is_bounded_and_counts_every_denial() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..50_000 {
            counter.record(denial(&number.to_string(), "::1", 403), at(0));
        }
        let drafts = counter.take_all();
        assert_eq!(drafts.len(), MAX_KEYS + 1);
        let total: u64 =
            drafts.iter().map(|draft| draft.details.members().unwrap()[0].1.text().parse::<u64>().unwrap()).sum();
        assert_eq!(total, 50_000);
        assert_eq!(drafts[0].actor.name, "others");
        assert!(drafts[0].details.text().starts_with(r#"{"count":49000,"#));
    }
}
