//! What becomes of the reservations of dead processes.

use std::sync::Arc;
use std::time::Duration;

use super::super::Stores;
use super::furniture::{
    LEASE, adds_up, attempt, audited, claim, furnish, id, limit_key, payer, payer_under, record, reserve, settle, usd,
    used, utc,
};
use crate::budget::{ExpiryReport, HoldRequest};
use crate::usage::UnknownUsage::{Bound, Free};
use crate::usage::{TokenSource, UsageOutcome, UsageRecord, UsageShare};

fn charged(charged: u64) -> ExpiryReport {
    ExpiryReport { charged, released: 0 }
}

fn released(released: u64) -> ExpiryReport {
    ExpiryReport { charged: 0, released }
}

async fn expire(stores: &Stores) -> ExpiryReport {
    stores.ledger.expire(Bound, 100).await.unwrap()
}

pub(super) async fn a_lease_that_is_over_is_charged(stores: &Stores) {
    furnish(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let reservation = reserve(stores, 1, &payer_under(1, &[5]), 70).await.unwrap();
    stores.clock.advance(LEASE.saturating_sub(Duration::from_millis(1)));
    assert_eq!(expire(stores).await, ExpiryReport::default(), "the lease is not over");
    stores.clock.advance(Duration::from_millis(1));
    assert_eq!(expire(stores).await, charged(1));
    assert_eq!(expire(stores).await, ExpiryReport::default());
    assert_eq!(used(stores, &payer(1)).await, (70, 0));
    let expected = UsageRecord {
        outcome: UsageOutcome::Abandoned,
        token_source: TokenSource::Bound,
        requested_model: "~Acme/Judge 'quoted'".to_owned(),
        share: UsageShare::WHOLE,
        latency: Duration::ZERO,
        ..record(1, payer_under(1, &[5]), 70, reservation.at)
    };
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(expected));
}

pub(super) async fn a_lease_that_is_over_is_given_back(stores: &Stores) {
    furnish(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    reserve(stores, 1, &payer(1), 70).await.unwrap();
    stores.clock.advance(LEASE);
    assert_eq!(stores.ledger.expire(Free, 100).await.unwrap(), released(1), "the operator bears it");
    let nothing_sent = HoldRequest { attempts: Arc::default(), ..claim(2, payer(1), 70) };
    stores.ledger.reserve(nothing_sent).await.unwrap().unwrap();
    stores.clock.advance(LEASE);
    assert_eq!(expire(stores).await, released(1), "it claimed for no attempt");
    assert_eq!(used(stores, &payer(1)).await, (0, 0));
    for number in [1, 2] {
        assert_eq!(stores.usage.find(&id(number)).await.unwrap(), None);
    }
}

pub(super) async fn what_was_extended_is_charged_too(stores: &Stores) {
    furnish(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    reserve(stores, 1, &payer(1), 40).await.unwrap();
    stores.ledger.extend(&id(1), usd(5), &[attempt(3), attempt(2)]).await.unwrap().unwrap();
    stores.ledger.extend(&id(1), usd(15), &[attempt(15)]).await.unwrap().unwrap();
    stores.clock.advance(LEASE);
    assert_eq!(expire(stores).await, charged(1));
    assert_eq!(used(stores, &payer(1)).await, (60, 0));
    let record = stores.usage.find(&id(1)).await.unwrap().unwrap();
    assert_eq!(*record.attempts, [attempt(40), attempt(3), attempt(2), attempt(15)]);
    assert_eq!((record.input_tokens, record.output_tokens, record.cost), (60, 28, usd(60)));
}

pub(super) async fn no_more_expire_than_are_wanted(stores: &Stores) {
    furnish(stores).await;
    for number in 1..=150 {
        reserve(stores, number, &payer(1), 1).await.unwrap();
    }
    stores.clock.advance(LEASE);
    reserve(stores, 200, &payer(1), 1).await.unwrap();
    assert_eq!(stores.ledger.expire(Bound, 3).await.unwrap(), charged(3));
    assert_eq!(stores.ledger.expire(Free, 2).await.unwrap(), released(2));
    assert_eq!(stores.ledger.expire(Bound, u64::MAX).await.unwrap(), charged(145));
    let audit = audited(stores).await;
    assert_eq!((audit.records, audit.reservations), (148, 1), "whose lease runs is left alone");
}

pub(super) async fn a_record_takes_the_place_of_one_made_for_the_dead(stores: &Stores) {
    furnish(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let reservation = reserve(stores, 1, &payer_under(1, &[5]), 70).await.unwrap();
    stores.clock.set(utc("2026-07-17T12:00:00Z"));
    assert_eq!(expire(stores).await, charged(1));
    let real = record(1, payer(1), 25, reservation.at);
    for settled in [real.clone(), record(1, payer(1), 99, reservation.at)] {
        settle(stores, settled).await;
        assert_eq!(stores.usage.find(&id(1)).await.unwrap().as_ref(), Some(&real));
        assert_eq!(used(stores, &payer(1)).await, (25, 0));
        adds_up(stores, "a record took the place of another").await;
    }
}

pub(super) async fn what_is_settled_does_not_expire(stores: &Stores) {
    furnish(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let reservation = reserve(stores, 1, &payer(1), 70).await.unwrap();
    settle(stores, record(1, payer(1), 25, reservation.at)).await;
    reserve(stores, 2, &payer(1), 70).await.unwrap();
    stores.ledger.release(&id(2)).await.unwrap();
    // A reservation by the id of a record that is there.
    reserve(stores, 1, &payer(1), 50).await.unwrap();
    stores.clock.advance(LEASE);
    assert_eq!(expire(stores).await, released(1), "it was charged already");
    assert_eq!(used(stores, &payer(1)).await, (25, 0));
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(record(1, payer(1), 25, reservation.at)));
}
