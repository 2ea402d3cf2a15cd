//! Holds.

use super::super::Stores;
use super::super::samples::{key_id, workspace_id};
use super::fixtures::{
    attempt, hold_request, id, insert_fixtures, limit_key, limit_statuses, payer, payer_under, record, reserve, spend,
    usd, used, utc,
};
use crate::budget::{BudgetScope, LimitExceeded, LimitStatus, Payer, ResetInterval, UsageCharge};
use crate::error::StoreError;
use crate::testing::join_all;

pub(super) async fn reserve_accepts_amounts_up_to_the_limit(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let made = reserve(stores, 1, &payer(1), 60).await.unwrap();
    assert_eq!((made.id, made.payer, made.amount), (id(1), payer(1), usd(60)));
    assert_eq!(made.at, utc("2026-07-15T12:00:00Z"));
    reserve(stores, 2, &payer(1), 40).await.unwrap();
    let refused = reserve(stores, 3, &payer(1), 1).await.unwrap_err();
    let expected = LimitExceeded {
        scope: BudgetScope::Key,
        guardrail_id: None,
        is_credit: false,
        limit: usd(100),
        reset: None,
        spent: usd(0),
        reserved: usd(100),
        wanted: usd(1),
        resets_at: None,
        is_uncertain: false,
    };
    assert_eq!(refused, expected);
    assert!(refused.waits_for_others());
    assert_eq!(used(stores, &payer(1)).await, (0, 100), "what is refused leaves no trace");
    reserve(stores, 3, &payer(2), i64::MAX).await.expect("who has no limit may reserve anything");
}

pub(super) async fn reserve_returns_existing_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let first = reserve(stores, 1, &payer(1), 60).await.unwrap();
    stores.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(reserve(stores, 1, &payer(1), 60).await, Ok(first.clone()));
    assert_eq!(reserve(stores, 1, &payer(2), 7).await, Ok(first.clone()), "also for another payer and amount");
    let both = join_all([1, 2].map(async |number| reserve(stores, number, &payer(1), 40).await)).await;
    assert_eq!(both[0], Ok(first), "beside others in one batch too");
    assert_eq!(both[1].as_ref().unwrap().amount, usd(40));
    assert_eq!(used(stores, &payer(1)).await, (0, 100));
}

pub(super) async fn increase_raises_a_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let extend = async |number, pico| stores.ledger.increase(&id(number), usd(pico), &[attempt(pico)]).await;
    assert!(matches!(extend(1, 1).await, Err(StoreError::Corrupt(_))), "nothing is reserved yet");
    reserve(stores, 1, &payer(1), 60).await.unwrap();
    extend(1, 30).await.unwrap().unwrap();
    assert_eq!(used(stores, &payer(1)).await, (0, 90));
    let refused = extend(1, 11).await.unwrap().unwrap_err();
    assert_eq!((refused.reserved, refused.wanted), (usd(90), usd(11)));
    assert_eq!(used(stores, &payer(1)).await, (0, 90), "the reservation is as it was");
    extend(1, 10).await.unwrap().unwrap();
    limit_key(stores, 1, Some((50, None))).await;
    extend(1, 0).await.unwrap().unwrap();
    assert_eq!(used(stores, &payer(1)).await, (0, 100), "attempts within the hold need no room");
    assert_eq!(reserve(stores, 1, &payer(1), 1).await.unwrap().amount, usd(100));
    spend(stores, 1, &payer(1), 5).await;
    assert_eq!(used(stores, &payer(1)).await, (5, 0), "all of it ends with the record");
    assert!(matches!(extend(1, 1).await, Err(StoreError::Corrupt(_))), "it has ended");
}

pub(super) async fn reserve_fails_for_unknown_payer(stores: &Stores) {
    insert_fixtures(stores).await;
    let strangers = [
        Payer { api_key: key_id(9), ..payer(1) },
        Payer { workspace_id: workspace_id(9), ..payer(1) },
        Payer { workspace_id: workspace_id(2), ..payer(1) },
    ];
    for stranger in strangers {
        let refused = stores.ledger.reserve(hold_request(1, stranger.clone(), 1)).await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{stranger:?}: {refused:?}");
        assert!(matches!(stores.limits.limit_statuses(&stranger).await, Err(StoreError::Corrupt(_))), "{stranger:?}");
    }
    reserve(stores, 1, &payer_under(1, &[77]), 1).await.expect("a guardrail that is gone limits nothing");
}

pub(super) async fn invalid_call_fails_alone_among_concurrent_calls(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let stranger = Payer { api_key: key_id(9), ..payer(1) };
    let claims =
        (1..=20).map(|number| hold_request(number, if number % 2 == 0 { payer(1) } else { stranger.clone() }, 1));
    let reserving = join_all(claims.map(|hold_request| stores.ledger.reserve(hold_request)));
    let missing = id(50);
    let extending = stores.ledger.increase(&missing, usd(1), &[]);
    let charge = UsageCharge::new(record(51, payer(1), 3, utc("2026-07-15T12:00:00Z")));
    let settling = stores.ledger.settle(&charge);
    let (reserved, (extended, settled)) =
        futures_util::future::join(reserving, futures_util::future::join(extending, settling)).await;
    for (number, result) in (1..).zip(reserved) {
        match result {
            Ok(Ok(_)) => assert_eq!(number % 2, 0),
            Err(StoreError::Corrupt(_)) => assert_eq!(number % 2, 1),
            other => panic!("{number}: {other:?}"),
        }
    }
    assert!(matches!(extended, Err(StoreError::Corrupt(_))));
    settled.unwrap();
    assert_eq!(used(stores, &payer(1)).await, (3, 10));
}

pub(super) async fn amount_out_of_range_fails_alone(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 2, Some((100, None))).await;
    spend(stores, 1, &payer(1), i64::MAX - 10).await;
    let now = utc("2026-07-15T12:00:00Z");
    let charges = (2..=9).map(|number| {
        let record = record(number, payer(if number == 5 { 1 } else { 2 }), 11, now);
        UsageCharge::new(record)
    });
    let charges: Vec<_> = charges.collect();
    let settling = charges.iter().map(|charge| stores.ledger.settle(charge));
    for (number, result) in (2..).zip(join_all(settling).await) {
        assert_eq!(matches!(result, Err(StoreError::Corrupt(_))), number == 5, "{number}: {result:?}");
    }
    assert_eq!(used(stores, &payer(2)).await, (77, 0));
    assert_eq!(stores.usage.find(&id(5)).await.unwrap(), None);
    spend(stores, 5, &payer(1), 10).await;

    let below = |pico| crate::usage::UsageRecord { cost: usd(pico), ..record(10, payer(2), 0, now) };
    let settled = stores.ledger.settle(&UsageCharge::new(below(-1))).await;
    assert!(matches!(settled, Err(StoreError::Corrupt(_))), "nothing is paid out");
    let reserved =
        stores.ledger.reserve(crate::budget::HoldRequest { amount: usd(-1), ..hold_request(11, payer(2), 0) }).await;
    assert!(matches!(reserved, Err(StoreError::Corrupt(_))));
    reserve(stores, 12, &payer(2), 1).await.unwrap();
    let extended = stores.ledger.increase(&id(12), usd(-1), &[]).await;
    assert!(matches!(extended, Err(StoreError::Corrupt(_))));
    reserve(stores, 13, &payer(1), 1).await.expect("what is reserved is counted apart from what is spent");
    assert_eq!(used(stores, &payer(2)).await, (77, 1));
}

pub(super) async fn limit_statuses_returns_all_limits(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(limit_statuses(stores, &payer(1)).await, []);
    limit_key(stores, 1, Some((100, Some(ResetInterval::Weekly)))).await;
    spend(stores, 1, &payer(1), 30).await;
    reserve(stores, 2, &payer(1), 20).await.unwrap();
    let expected = LimitStatus {
        scope: BudgetScope::Key,
        guardrail_id: None,
        is_credit: false,
        limit: usd(100),
        reset: Some(ResetInterval::Weekly),
        spent: usd(30),
        reserved: usd(20),
        resets_at: Some(utc("2026-07-20T00:00:00Z")),
    };
    assert_eq!(limit_statuses(stores, &payer(1)).await, [expected]);
}
