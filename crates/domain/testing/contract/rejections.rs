//! Cases of [`crate::usage::RejectionStore`].

use chrono::{DateTime, TimeDelta, Utc};

use super::super::join_all;
use super::Stores;
use super::samples::{at, key_id, workspace_id};
use crate::usage::{
    Rejection, RejectionCount, RejectionFilter, RejectionReason, RejectionStatus, RejectionSum, hour_of,
};

suite! {
    /// Every case of the port's contract.
    rejection_store_cases as rejection_store_contract over Stores {
        counts_add_up_over_calls,
        concurrent_counts_add_up,
        every_status_and_reason_is_stored,
        list_is_newest_first_and_filtered,
        sum_is_per_status_and_reason,
        many_counts_are_one_call,
        prune_removes_ended_hours_only,
    }
}

fn hour(number: i64) -> DateTime<Utc> {
    hour_of(at(0)) + TimeDelta::hours(number)
}

fn rejection(key: u64, status: RejectionStatus, reason: RejectionReason) -> Rejection {
    Rejection { api_key: key_id(key), workspace_id: Some(workspace_id(key)), status, reason }
}

fn limited(key: u64, hours: i64, count: u64) -> RejectionCount {
    let rejection = rejection(key, RejectionStatus::TooManyRequests, RejectionReason::RateLimited);
    RejectionCount { rejection, hour: hour(hours), count }
}

fn broke(key: u64, hours: i64, count: u64) -> RejectionCount {
    let rejection = rejection(key, RejectionStatus::PaymentRequired, RejectionReason::CreditExhausted);
    RejectionCount { rejection, hour: hour(hours), count }
}

async fn all(stores: &Stores) -> Vec<RejectionCount> {
    stores.rejections.list(&RejectionFilter::default(), 10_000).await.unwrap()
}

async fn counts_add_up_over_calls(stores: &Stores) {
    assert_eq!(all(stores).await, []);
    stores.rejections.add(&[]).await.unwrap();
    stores.rejections.add(&[limited(1, 0, 2), limited(1, 1, 3)]).await.unwrap();
    stores.rejections.add(&[limited(1, 1, 4), limited(2, 1, 1)]).await.unwrap();
    assert_eq!(all(stores).await, [limited(1, 1, 7), limited(2, 1, 1), limited(1, 0, 2)]);
}

async fn concurrent_counts_add_up(stores: &Stores) {
    join_all((0..40).map(|_| async { stores.rejections.add(&[limited(1, 0, 1), broke(1, 0, 2)]).await.unwrap() }))
        .await;
    assert_eq!(all(stores).await, [broke(1, 0, 80), limited(1, 0, 40)]);
}

async fn every_status_and_reason_is_stored(stores: &Stores) {
    let mut counts = Vec::new();
    for status in RejectionStatus::ALL {
        for reason in RejectionReason::ALL {
            let workspace_id = (status != RejectionStatus::Forbidden).then(|| workspace_id(1));
            let rejection = Rejection { api_key: key_id(1), workspace_id, status, reason };
            counts.push(RejectionCount { rejection, hour: hour(0), count: counts.len() as u64 + 1 });
        }
    }
    stores.rejections.add(&counts).await.unwrap();
    counts.reverse();
    assert_eq!(all(stores).await, counts);
}

async fn list_is_newest_first_and_filtered(stores: &Stores) {
    let counts = [limited(1, 2, 9), broke(2, 2, 1), broke(1, 1, 5), limited(2, 0, 7)];
    stores.rejections.add(&counts).await.unwrap();
    let list = async |filter: RejectionFilter, limit| stores.rejections.list(&filter, limit).await.unwrap();
    let none = RejectionFilter::default;
    assert_eq!(list(none(), 10).await, counts);
    assert_eq!(list(none(), 2).await, counts[..2]);
    assert_eq!(list(RejectionFilter { api_key: Some(key_id(1)), ..none() }, 10).await, [counts[0], counts[2]]);
    let workspace = RejectionFilter { workspaces: Some(vec![workspace_id(2)]), ..none() };
    assert_eq!(list(workspace, 10).await, [counts[1], counts[3]]);
    let since = Some(hour(1) + TimeDelta::minutes(59));
    assert_eq!(list(RejectionFilter { since, ..none() }, 10).await, counts[..3], "the hour of the time included");
    let until = Some(hour(1));
    assert_eq!(list(RejectionFilter { until, ..none() }, 10).await, counts[3..], "the hour of the time excluded");
}

async fn sum_is_per_status_and_reason(stores: &Stores) {
    assert_eq!(stores.rejections.sum(&RejectionFilter::default()).await.unwrap(), []);
    stores.rejections.add(&[limited(1, 0, 2), limited(2, 3, 5), broke(1, 1, 3), broke(2, 0, 1)]).await.unwrap();
    let sum = |count: RejectionCount| RejectionSum {
        status: count.rejection.status,
        reason: count.rejection.reason,
        count: count.count,
        last_hour: count.hour,
    };
    let sums = stores.rejections.sum(&RejectionFilter::default()).await.unwrap();
    assert_eq!(sums, [sum(limited(1, 3, 7)), sum(broke(1, 1, 4))]);
    let of_key = RejectionFilter { api_key: Some(key_id(1)), ..RejectionFilter::default() };
    assert_eq!(stores.rejections.sum(&of_key).await.unwrap(), [sum(broke(1, 1, 3)), sum(limited(1, 0, 2))]);
}

async fn many_counts_are_one_call(stores: &Stores) {
    let counts: Vec<RejectionCount> = (0..5000).map(|key| limited(key, 0, 1)).collect();
    stores.rejections.add(&counts).await.unwrap();
    stores.rejections.add(&counts).await.unwrap();
    let sums = stores.rejections.sum(&RejectionFilter::default()).await.unwrap();
    assert_eq!((sums.len(), sums[0].count, all(stores).await.len()), (1, 10_000, 5000));
}

async fn prune_removes_ended_hours_only(stores: &Stores) {
    stores.rejections.add(&[limited(1, 0, 1), broke(1, 0, 1), limited(1, 1, 1), limited(1, 2, 1)]).await.unwrap();
    let before = hour(2) - TimeDelta::milliseconds(1);
    assert_eq!(stores.rejections.prune(before, 1).await.unwrap(), 1);
    assert_eq!(stores.rejections.prune(before, 10).await.unwrap(), 1);
    assert_eq!(all(stores).await, [limited(1, 2, 1), limited(1, 1, 1)], "an hour that has not ended stays");
    assert_eq!(stores.rejections.prune(hour(2), 10).await.unwrap(), 1);
    assert_eq!(stores.rejections.prune(hour(2), 10).await.unwrap(), 0);
    assert_eq!(all(stores).await, [limited(1, 2, 1)]);
}
