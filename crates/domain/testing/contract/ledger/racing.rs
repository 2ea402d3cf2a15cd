//! Concurrent calls.

use futures_util::future::join;

use super::super::Stores;
use super::fixtures::{
    attempt, id, insert_fixtures, limit_key, limit_statuses, limit_workspace, payer, record, reserve, settle, usd,
    used, utc,
};
use crate::budget::WorkspaceBudgets;
use crate::testing::{EventCount, join_all, yield_now};

pub(super) async fn concurrent_reserves_are_admitted_up_to_the_limit(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((109, None))).await;
    let payer = payer(1);
    let admitted = join_all((1..=64).map(|number| reserve(stores, number, &payer, 10))).await;
    assert_eq!(admitted.iter().filter(|result| result.is_ok()).count(), 10);
    for refused in admitted.iter().filter_map(|result| result.as_ref().err()) {
        assert!(refused.reserved <= usd(100) && refused.waits_for_others(), "{refused:?}");
    }
    assert_eq!(used(stores, &payer).await, (0, 100));
}

pub(super) async fn concurrent_reads_never_exceed_the_limit(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    limit_workspace(stores, 1, WorkspaceBudgets { daily: Some(usd(95)), ..WorkspaceBudgets::default() }).await;
    let payer = payer(1);
    let check = async || {
        for limit in limit_statuses(stores, &payer).await {
            let used = limit.spent.pico() + limit.reserved.pico();
            assert!(used <= limit.limit.pico(), "{limit:?}");
        }
    };
    let read = join_all((1..=64).map(async |number| {
        // Upper bounds of 10 that cost 4 or nothing.
        let Ok(reservation) = reserve(stores, number, &payer, 10).await else { return 0 };
        // The holds of others are in force at this point.
        yield_now().await;
        check().await;
        if number % 3 == 0 {
            stores.ledger.release(&id(number)).await.unwrap();
        } else {
            settle(stores, record(number, payer.clone(), 4, reservation.at)).await;
        }
        check().await;
        2
    }))
    .await;
    assert!(read.iter().sum::<i32>() > 2, "several holds were read");
    assert!(limit_statuses(stores, &payer).await.iter().all(|limit| limit.reserved == usd(0)), "no hold is left");
}

/// Callers that wait for each other's charges spend the limit, and no more.
pub(super) async fn concurrent_charges_make_room(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let (payer, charges) = (payer(1), EventCount::default());
    let spent = join_all((1..=64).map(async |number| {
        loop {
            let before = charges.get();
            match reserve(stores, number, &payer, 10).await {
                Ok(reservation) => {
                    settle(stores, record(number, payer.clone(), 5, reservation.at)).await;
                    charges.add();
                    return 5;
                }
                Err(refused) if refused.waits_for_others() => charges.reached(before + 1).await,
                Err(_) => return 0,
            }
        }
    }))
    .await;
    assert_eq!(spent.iter().sum::<i64>(), 95, "95 are spent, and a bound of 10 fits no more");
    assert_eq!(used(stores, &payer).await, (95, 0));
}

pub(super) async fn concurrent_increases_share_the_room(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let payer = payer(1);
    for number in 1..=10 {
        reserve(stores, number, &payer, 5).await.unwrap();
    }
    let extended = join_all((1..=10).map(async |number| {
        let first = stores.ledger.increase(&id(number), usd(5), &[attempt(5)]).await.unwrap();
        let second = stores.ledger.increase(&id(number), usd(5), &[attempt(5)]).await.unwrap();
        i64::from(first.is_ok()) + i64::from(second.is_ok())
    }))
    .await;
    assert_eq!(extended.iter().sum::<i64>(), 10, "{extended:?}");
    assert_eq!(used(stores, &payer).await, (0, 100));
    // A concurrent increase and charge of one request leave no hold, in any order.
    let now = utc("2026-07-15T12:00:00Z");
    limit_key(stores, 1, Some((1_000, None))).await;
    join_all((1..=10).map(async |number| {
        let extending = async { drop(stores.ledger.increase(&id(number), usd(1), &[attempt(1)]).await) };
        join(extending, settle(stores, record(number, payer.clone(), 3, now))).await;
    }))
    .await;
    assert_eq!(used(stores, &payer).await, (30, 0));
}

pub(super) async fn concurrent_reserves_of_one_id_return_one_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    let payer = payer(1);
    let made = join_all((0..20).map(|_| reserve(stores, 1, &payer, 60))).await;
    assert!(made.iter().all(|result| result == &made[0] && result.is_ok()), "{made:?}");
    assert_eq!(used(stores, &payer).await, (0, 60));
    let ending = (0..20_i64).map(async |number| {
        if number % 2 == 0 {
            stores.ledger.release(&id(1)).await.unwrap();
        } else {
            settle(stores, record(1, payer.clone(), 7, utc("2026-07-15T12:00:00Z"))).await;
        }
    });
    join_all(ending).await;
    assert_eq!(used(stores, &payer).await, (7, 0));
}
