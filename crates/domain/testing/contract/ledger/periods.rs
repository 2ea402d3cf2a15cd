//! Days, weeks and months by the store's clock.

use super::super::Stores;
use super::fixtures::{attempt, id, insert_fixtures, limit_key, payer, record, reserve, settle, spend, usd, used, utc};
use crate::budget::ResetInterval;

/// Asserts that a limit of 100 is used up at `before`, and free again at `after`.
async fn rolls_over(stores: &Stores, reset: ResetInterval, before: &[&str], after: &str) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(reset)))).await;
    stores.clock.set(utc(before[0]));
    spend(stores, 1, &payer(1), 60).await;
    reserve(stores, 2, &payer(1), 40).await.unwrap();
    for moment in before {
        stores.clock.set(utc(moment));
        let refused = reserve(stores, 3, &payer(1), 1).await.unwrap_err();
        assert_eq!((refused.reset, refused.resets_at), (Some(reset), Some(utc(after))), "{moment}");
        assert_eq!((refused.spent, refused.reserved), (usd(60), usd(40)), "{moment}");
    }
    stores.clock.set(utc(after));
    assert_eq!(used(stores, &payer(1)).await, (0, 0));
    reserve(stores, 3, &payer(1), 100).await.unwrap();
    assert!(reserve(stores, 4, &payer(1), 1).await.is_err());
}

pub(super) async fn day_ends_at_midnight(stores: &Stores) {
    let before = ["2026-07-15T00:00:00Z", "2026-07-15T12:00:00Z", "2026-07-15T23:59:59.999Z"];
    rolls_over(stores, ResetInterval::Daily, &before, "2026-07-16T00:00:00Z").await;
}

pub(super) async fn week_begins_on_monday(stores: &Stores) {
    // A Monday, the end of the year, and a Sunday.
    let before = ["2026-12-28T00:00:00Z", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z", "2027-01-03T23:59:59.999Z"];
    rolls_over(stores, ResetInterval::Weekly, &before, "2027-01-04T00:00:00Z").await;
}

pub(super) async fn month_begins_on_its_first_day(stores: &Stores) {
    let before = ["2028-02-01T00:00:00Z", "2028-02-28T12:00:00Z", "2028-02-29T23:59:59.999Z"];
    rolls_over(stores, ResetInterval::Monthly, &before, "2028-03-01T00:00:00Z").await;
}

pub(super) async fn charge_belongs_to_the_period_of_its_hold(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Daily)))).await;
    stores.clock.set(utc("2026-07-15T23:59:59.999Z"));
    let yesterday = reserve(stores, 1, &payer(1), 70).await.unwrap();
    stores.clock.set(utc("2026-07-16T00:00:10Z"));
    reserve(stores, 2, &payer(1), 100).await.expect("a new day");
    stores.ledger.increase(&id(1), usd(30), &[attempt(30)]).await.unwrap().expect("there is room in its own day");
    let refused = stores.ledger.increase(&id(1), usd(1), &[attempt(1)]).await.unwrap().unwrap_err();
    assert_eq!((refused.reserved, refused.resets_at), (usd(100), Some(utc("2026-07-16T00:00:00Z"))));
    settle(stores, record(1, payer(1), 90, yesterday.at)).await;
    assert_eq!(used(stores, &payer(1)).await, (0, 100), "today's is untouched");
    stores.clock.set(utc("2026-07-15T23:59:59.999Z"));
    assert_eq!(used(stores, &payer(1)).await, (90, 0));
}
