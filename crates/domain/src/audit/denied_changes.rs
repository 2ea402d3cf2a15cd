//! Changes that were refused, counted so that nobody can flood the log.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

use super::{Actor, AuditDraft, AuditOutcome};
use crate::json::Json;

/// A change that was asked for by somebody who is known, and refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedChange {
    /// Who asked, and from where.
    pub actor: Actor,
    /// Method and pattern of the route, such as `DELETE /guardrails/{id}`. MUST come from a fixed list.
    pub route: String,
    /// The status that it was answered with.
    pub status: u16,
}

/// Hears of refused changes. MUST NOT wait.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait DeniedChangeRecorder: Send + Sync {
    /// One more.
    fn record(&self, refusal: DeniedChange);
}

/// What is written down of a refusal, whatever it was.
const ACTION: &str = "request.refused";
/// Addresses that are named of one key's refusals on one route in one minute.
const SOURCES: usize = 8;
/// Keys and routes that are told apart at a time.
const MOST: usize = 1000;

/// DeniedChangeRecorder by minute, key and route. What it takes is bounded, whoever asks for however much.
#[derive(Debug, Default)]
pub struct DeniedChangeCounter {
    counts: BTreeMap<Cell, Count>,
}

/// What is counted together. Without an actor it is all that found no place of its own in its minute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    minute: DateTime<Utc>,
    whom: Option<(String, String)>,
}

#[derive(Debug, Default)]
struct Count {
    refusals: u64,
    by_status: BTreeMap<u16, u64>,
    sources: Vec<String>,
    more_sources: bool,
}

impl DeniedChangeCounter {
    /// One more, at this moment.
    pub fn record(&mut self, refusal: DeniedChange, at: DateTime<Utc>) {
        let minute = minute_of(at);
        let DeniedChange { actor, route, status } = refusal;
        let mut cell = Cell { minute, whom: Some((actor.name, route)) };
        if self.counts.len() >= MOST && !self.counts.contains_key(&cell) {
            cell.whom = None;
        }
        let count = self.counts.entry(cell).or_default();
        count.refusals = count.refusals.saturating_add(1);
        let of_status = count.by_status.entry(status).or_default();
        *of_status = of_status.saturating_add(1);
        if let Some(source) = actor.source.filter(|source| !count.sources.contains(source)) {
            if count.sources.len() < SOURCES {
                count.sources.push(source);
            } else {
                count.more_sources = true;
            }
        }
    }

    /// Takes what belongs to minutes that are over, oldest first.
    pub fn take_over(&mut self, now: DateTime<Utc>) -> Vec<AuditDraft> {
        let current = Cell { minute: minute_of(now), whom: None };
        let going_on = self.counts.split_off(&current);
        drafts(std::mem::replace(&mut self.counts, going_on))
    }

    /// Takes everything.
    pub fn take_all(&mut self) -> Vec<AuditDraft> {
        drafts(std::mem::take(&mut self.counts))
    }
}

fn minute_of(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::minutes(1)).unwrap_or(at)
}

fn drafts(counts: BTreeMap<Cell, Count>) -> Vec<AuditDraft> {
    counts.into_iter().map(|(cell, count)| draft(cell, &count)).collect()
}

/// The one address stands as the actor's; several are listed.
fn draft(cell: Cell, count: &Count) -> AuditDraft {
    let (name, subject) = match cell.whom {
        Some((name, route)) => (name, route),
        None => ("others".to_owned(), "various routes".to_owned()),
    };
    let alone = count.sources.len() == 1;
    let by_status: Vec<(String, String)> =
        count.by_status.iter().map(|(status, refusals)| (status.to_string(), refusals.to_string())).collect();
    let by_status = Json::object(by_status.iter().map(|(status, refusals)| (status.as_str(), refusals.as_str())));
    let minute = Json::string(&cell.minute.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    let sources: Vec<Json> = count.sources.iter().map(|source| Json::string(source)).collect();
    let sources = Json::array(sources.iter().map(Json::text));
    let refusals = count.refusals.to_string();
    let mut members = vec![("count", refusals.as_str()), ("minute", minute.text()), ("statuses", by_status.text())];
    if !alone && !count.sources.is_empty() {
        members.push(("addresses", sources.text()));
    }
    if count.more_sources {
        members.push(("more_addresses", "true"));
    }
    AuditDraft {
        actor: Actor { name, source: count.sources.first().filter(|_| alone).cloned() },
        action: ACTION,
        subject,
        outcome: AuditOutcome::Refused,
        details: Json::object(members),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_040, 0).unwrap() + TimeDelta::seconds(seconds)
    }

    fn refusal(key: &str, address: &str, status: u16) -> DeniedChange {
        let actor = Actor { name: format!("key:{key}"), source: Some(address.to_owned()) };
        DeniedChange { actor, route: "DELETE /guardrails/{id}".to_owned(), status }
    }

    #[test]
    fn a_flood_is_one_entry_a_minute() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..100_000_u64 {
            counter.record(
                refusal("a", "10.0.0.1", if number % 4 == 0 { 403 } else { 404 }),
                at(i64::try_from(number).unwrap() / 1000),
            );
        }
        let drafts = counter.take_all();
        assert_eq!(drafts.len(), 2, "100 seconds are two minutes");
        let first = &drafts[0];
        assert_eq!(first.actor, Actor { name: "key:a".to_owned(), source: Some("10.0.0.1".to_owned()) });
        assert_eq!((first.action, first.outcome), ("request.refused", AuditOutcome::Refused));
        assert_eq!(first.subject, "DELETE /guardrails/{id}");
        let expected = r#"{"count":60000,"minute":"2026-09-21T14:14:00Z","statuses":{"403":15000,"404":45000}}"#;
        assert_eq!(first.details.text(), expected);
        assert!(drafts[1].details.text().contains(r#""count":40000"#));
        assert!(counter.take_all().is_empty());
    }

    #[test]
    fn keys_routes_and_minutes_are_told_apart() {
        let mut counter = DeniedChangeCounter::default();
        counter.record(refusal("a", "::1", 403), at(0));
        counter.record(refusal("b", "::1", 403), at(1));
        counter.record(DeniedChange { route: "POST /guardrails".to_owned(), ..refusal("a", "::1", 400) }, at(2));
        counter.record(refusal("a", "::1", 403), at(60));
        assert_eq!(counter.take_over(at(59)).len(), 0, "the minute is not over");
        assert_eq!(counter.take_over(at(60)).len(), 3);
        assert_eq!(counter.take_all().len(), 1);
    }

    #[test]
    fn several_addresses_are_listed_and_too_many_are_not() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..3 {
            counter.record(refusal("a", &format!("10.0.0.{number}"), 409), at(0));
        }
        let drafts = counter.take_all();
        assert_eq!(drafts[0].actor.source, None);
        assert!(drafts[0].details.text().ends_with(r#","addresses":["10.0.0.0","10.0.0.1","10.0.0.2"]}"#));
        for number in 0..1000 {
            counter.record(refusal("a", &format!("10.0.0.{number}"), 409), at(0));
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
    fn what_it_takes_is_bounded_and_nothing_goes_uncounted() {
        let mut counter = DeniedChangeCounter::default();
        for number in 0..50_000 {
            counter.record(refusal(&number.to_string(), "::1", 403), at(0));
        }
        let drafts = counter.take_all();
        assert_eq!(drafts.len(), MOST + 1);
        let counted: u64 =
            drafts.iter().map(|draft| draft.details.members().unwrap()[0].1.text().parse::<u64>().unwrap()).sum();
        assert_eq!(counted, 50_000);
        assert_eq!(drafts[0].actor.name, "others");
        assert!(drafts[0].details.text().starts_with(r#"{"count":49000,"#));
    }
}
