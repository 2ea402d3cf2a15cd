//! Cases of [`crate::usage::UsageRepository`].

use std::time::Duration;

use chrono::{Days, NaiveTime, TimeDelta};

use super::super::{SequentialIds, join_all};
use super::Stores;
use super::samples::{add_key, add_workspace, at, fold_charge, guardrail_id, inference_key, key_id, workspace_id};
use crate::budget::UsageCharge;
use crate::error::StoreError;
use crate::ids::{DecisionId, PresetId, RequestId};
use crate::json::Json;
use crate::money::{Price, Usd};
use crate::pricing::TokenPrices;
use crate::usage::{
    AttemptOutcome, AttemptRecord, FilterAction, Finding, PresetReference, UsageFilter, UsageGroup, UsageOutcome,
    UsageRecord, UsageShare, UsageSource, UsageSum, UsageSumQuery, UsageTotals,
};

suite! {
    /// Every case of the port's contract but the death of the process.
    usage_repository_cases as usage_repository_contract over Stores {
        find_returns_recorded_usage,
        second_charge_changes_nothing,
        list_is_newest_first,
        list_by_key_needs_no_workspace,
        list_filters_by_provider_and_outcome,
        list_includes_since_and_excludes_until,
        list_selects_by_time_of_charge,
        sums_follow_charges_and_late_charges,
        sums_outlive_records_until_their_own_retention,
        list_filters_by_model_user_session_and_several_workspaces,
        walk_over_pages_is_one_read_while_others_write,
        last_use_is_the_start_of_the_newest_record,
        concurrent_charges_are_all_recorded,
        concurrent_charges_of_one_id_record_once,
    }
}

async fn settle(stores: &Stores, record: UsageRecord) -> Result<(), StoreError> {
    fold_charge(stores, UsageCharge::new(record)).await
}

async fn insert_fixtures(stores: &Stores) {
    for number in [1, 2] {
        add_workspace(stores, number).await;
        add_key(stores, &inference_key(number, number)).await;
    }
}

fn id(number: u64) -> DecisionId {
    DecisionId::from_uuid(SequentialIds::uuid(number))
}

pub(super) fn record(number: u64, workspace: u64) -> UsageRecord {
    let prices =
        TokenPrices { prompt: "0.0000000208333333333333".parse().unwrap(), completion: "0.10".parse().unwrap() };
    let refused = AttemptRecord {
        provider: "acme-two".into(),
        model: "acme/judge:free".parse().unwrap(),
        upstream_model: "judge-✓".into(),
        part: 0,
        outcome: AttemptOutcome::Overloaded,
        upstream_status: Some(529),
        began: Duration::ZERO,
        latency: Duration::from_micros(77_001),
        input_tokens: 0,
        output_tokens: 0,
        usage_source: UsageSource::Reported,
        prices: TokenPrices { prompt: Price::ZERO, completion: Price::ZERO },
    };
    let completed = AttemptRecord {
        provider: "acme".into(),
        model: "acme/judge".parse().unwrap(),
        part: u32::MAX,
        outcome: AttemptOutcome::Completed,
        upstream_status: None,
        began: Duration::from_micros(77_002),
        input_tokens: 9_007_199_254_740_993,
        output_tokens: 3,
        usage_source: UsageSource::UpperBound,
        prices,
        ..refused.clone()
    };
    UsageRecord {
        id: id(number),
        workspace_id: workspace_id(workspace),
        api_key: key_id(workspace),
        request_id: RequestId::from_uuid(SequentialIds::uuid(number)),
        requested_model: "Acme/Judge:floor 'quoted'".to_owned(),
        model: "acme/judge".parse().unwrap(),
        provider: "acme".to_owned(),
        outcome: UsageOutcome::Completed,
        input_tokens: 9_007_199_254_740_993,
        output_tokens: 3,
        usage_source: UsageSource::Reported,
        cost: Usd::from_pico(18_018_001),
        prices,
        share: UsageShare { index: u32::MAX - 1, of: u32::MAX },
        attempts: vec![refused, completed].into(),
        guardrails: vec![guardrail_id(7)],
        findings: vec![Finding {
            guardrail_id: guardrail_id(7),
            label: "ÉMAIL 'x'".to_owned(),
            action: FilterAction::Redact,
            path: "state.a[0]".to_owned(),
            count: 3,
        }],
        charged_at: at(i64::try_from(number).unwrap()),
        session_id: Some("sëssion".to_owned()),
        trace: Some(Json::parse("{\"a\" : 1.0,\t\"a\":1e400, \"z\":\"\\ud800\"}").unwrap()),
        user: Some("user".to_owned()),
        client_address: Some("2001:db8::7".parse().unwrap()),
        preset: Some(PresetReference { id: PresetId::from_uuid(SequentialIds::uuid(70)), version: 3 }),
        outcomes: Some(Json::parse(r#"{"q":{"outcome":"accepted","stage":1,"model":"a/b","threshold":0.8}}"#).unwrap()),
        created_at: at(i64::try_from(number).unwrap()),
        latency: Duration::from_millis(123_456),
    }
}

async fn find_returns_recorded_usage(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), None);
    let bare = UsageRecord {
        outcome: UsageOutcome::Cancelled,
        usage_source: UsageSource::UpperBound,
        cost: Usd::ZERO,
        share: UsageShare::WHOLE,
        attempts: std::sync::Arc::default(),
        session_id: None,
        trace: None,
        user: None,
        client_address: None,
        preset: None,
        outcomes: None,
        ..record(2, 1)
    };
    let failed = UsageRecord {
        outcome: UsageOutcome::Failed,
        client_address: Some("192.0.2.7".parse().unwrap()),
        ..record(3, 2)
    };
    for record in [record(1, 1), bare, failed] {
        settle(stores, record.clone()).await.unwrap();
        let found = stores.usage.find(&record.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&record), "field by field");
        let texts = |record: &UsageRecord| {
            let trace = record.trace.as_ref().map(|trace| trace.text().to_owned());
            let written = |prices: &TokenPrices| (prices.prompt.to_string(), prices.completion.to_string());
            let attempts: Vec<_> = record.attempts.iter().map(|attempt| written(&attempt.prices)).collect();
            (trace, written(&record.prices), attempts)
        };
        assert_eq!(found.as_ref().map(texts), Some(texts(&record)), "byte for byte");
    }
}

async fn second_charge_changes_nothing(stores: &Stores) {
    insert_fixtures(stores).await;
    settle(stores, record(1, 1)).await.unwrap();
    let other = UsageRecord { cost: Usd::from_pico(1), workspace_id: workspace_id(2), ..record(1, 1) };
    settle(stores, other).await.unwrap();
    assert_eq!(stores.usage.find(&id(1)).await.unwrap(), Some(record(1, 1)));
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 10).await.unwrap(), [record(1, 1)]);
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(2)), 10).await.unwrap(), []);
}

async fn list_is_newest_first(stores: &Stores) {
    insert_fixtures(stores).await;
    for (number, workspace) in [(2, 1), (4, 1), (3, 2), (1, 1)] {
        settle(stores, record(number, workspace)).await.unwrap();
    }
    assert_eq!(
        stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 2).await.unwrap(),
        [record(4, 1), record(2, 1)]
    );
    let all = stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), u64::MAX).await.unwrap();
    assert_eq!(all, [record(4, 1), record(2, 1), record(1, 1)]);
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(9)), 10).await.unwrap(), []);
}

async fn list_by_key_needs_no_workspace(stores: &Stores) {
    insert_fixtures(stores).await;
    let of = |number, workspace, key| UsageRecord { api_key: key_id(key), ..record(number, workspace) };
    for (number, workspace, key) in [(1, 1, 7), (2, 2, 8), (3, 2, 7)] {
        settle(stores, of(number, workspace, key)).await.unwrap();
    }
    let all = UsageFilter { api_key: Some(key_id(7)), ..UsageFilter::default() };
    assert_eq!(stores.usage.list(&all, 9).await.unwrap(), [of(3, 2, 7), of(1, 1, 7)]);
    let page = UsageFilter { after: Some((of(3, 2, 7).charged_at, id(3))), ..all.clone() };
    assert_eq!(stores.usage.list(&page, 9).await.unwrap(), [of(1, 1, 7)]);
    let one = UsageFilter { workspaces: Some(vec![workspace_id(2)]), ..all };
    assert_eq!(stores.usage.list(&one, 9).await.unwrap(), [of(3, 2, 7)]);
    assert_eq!(
        stores.usage.list(&UsageFilter { api_key: Some(key_id(9)), ..UsageFilter::default() }, 9).await.unwrap(),
        []
    );
}

async fn list_filters_by_provider_and_outcome(stores: &Stores) {
    insert_fixtures(stores).await;
    let of = |number, provider: &str, outcome| UsageRecord {
        provider: provider.to_owned(),
        outcome,
        ..record(number, if number == 3 { 2 } else { 1 })
    };
    for (number, provider, outcome) in [
        (1, "alpha", UsageOutcome::Completed),
        (2, "beta", UsageOutcome::Failed),
        (3, "alpha", UsageOutcome::Failed),
        (4, "alpha", UsageOutcome::Cancelled),
    ] {
        settle(stores, of(number, provider, outcome)).await.unwrap();
    }
    let list = async |provider: Option<&str>, outcome, limit| {
        let filter = UsageFilter { provider: provider.map(str::to_owned), outcome, ..UsageFilter::default() };
        let listed = stores.usage.list(&filter, limit).await.unwrap();
        listed.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None, 9).await, [id(4), id(3), id(2), id(1)], "of all workspaces");
    assert_eq!(list(Some("alpha"), None, 9).await, [id(4), id(3), id(1)]);
    assert_eq!(list(Some("alpha"), None, 2).await, [id(4), id(3)]);
    assert_eq!(list(None, Some(UsageOutcome::Failed), 9).await, [id(3), id(2)]);
    assert_eq!(list(Some("beta"), Some(UsageOutcome::Failed), 9).await, [id(2)]);
    assert_eq!(list(Some("gamma"), None, 9).await, []);
}

/// Adjacent ranges share a bound; a record at the bound belongs to one of them.
async fn list_includes_since_and_excludes_until(stores: &Stores) {
    insert_fixtures(stores).await;
    for number in 1..=4 {
        settle(stores, record(number, 1)).await.unwrap();
    }
    let list = async |since: Option<u64>, until: Option<u64>| {
        let moment = |number: Option<u64>| number.map(|number| record(number, 1).charged_at);
        let filter =
            UsageFilter { since: moment(since), until: moment(until), ..UsageFilter::for_workspace(workspace_id(1)) };
        let listed = stores.usage.list(&filter, 10).await.unwrap();
        listed.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, Some(3)).await, [id(2), id(1)]);
    assert_eq!(list(Some(3), None).await, [id(4), id(3)]);
    assert_eq!(list(Some(2), Some(4)).await, [id(3), id(2)]);
    assert_eq!(list(Some(2), Some(2)).await, []);
}

/// A charge of a request that began on the day before belongs to the day of the charge.
async fn list_selects_by_time_of_charge(stores: &Stores) {
    insert_fixtures(stores).await;
    for number in 1..=4 {
        // The order of the charges is the reverse of that of the requests.
        let charged_at = at(i64::try_from(10 - number).unwrap());
        settle(stores, UsageRecord { charged_at, ..record(number, 1) }).await.unwrap();
    }
    let by_charge = UsageFilter::for_workspace(workspace_id(1));
    let list = async |filter: UsageFilter, limit| {
        let listed = stores.usage.list(&filter, limit).await.unwrap();
        listed.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(list(by_charge.clone(), 10).await, [id(1), id(2), id(3), id(4)]);
    let of_period = UsageFilter { since: Some(at(7)), until: Some(at(9)), ..by_charge.clone() };
    assert_eq!(list(of_period, 10).await, [id(2), id(3)]);
    let next_page = UsageFilter { after: Some((at(8), id(2))), ..by_charge };
    assert_eq!(list(next_page, 1).await, [id(3)]);
}

async fn list_filters_by_model_user_session_and_several_workspaces(stores: &Stores) {
    insert_fixtures(stores).await;
    let (text, model) = (|text: &str| Some(text.to_owned()), |id: &str| id.parse().unwrap());
    for (number, workspace) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let user = text(if number < 3 { "u" } else { "v" });
        let session_id = (number == 4).then(|| "s".to_owned());
        let model = model(if number == 1 { "acme/one" } else { "acme/two" });
        settle(stores, UsageRecord { model, session_id, user, ..record(number, workspace) }).await.unwrap();
    }
    let list = async |filter: UsageFilter, limit| {
        let listed = stores.usage.list(&filter, limit).await.unwrap();
        listed.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    let all = UsageFilter::default;
    assert_eq!(list(UsageFilter { model: text("acme/two"), ..all() }, 9).await, [id(4), id(3), id(2)]);
    assert_eq!(list(UsageFilter { user: text("u"), ..all() }, 9).await, [id(2), id(1)]);
    assert_eq!(list(UsageFilter { session_id: text("s"), ..all() }, 9).await, [id(4)]);
    assert_eq!(list(UsageFilter { user: text(""), ..all() }, 9).await, []);
    let of = |workspaces: &[u64]| UsageFilter {
        workspaces: Some(workspaces.iter().map(|number| workspace_id(*number)).collect()),
        ..all()
    };
    assert_eq!(list(of(&[1, 2]), 3).await, [id(4), id(3), id(2)]);
    assert_eq!(list(UsageFilter { user: text("u"), ..of(&[2, 1, 9]) }, 9).await, [id(2), id(1)]);
    let next = UsageFilter { after: Some((record(3, 1).charged_at, id(3))), ..of(&[1, 2]) };
    assert_eq!(list(next.clone(), 9).await, [id(2), id(1)]);
    assert_eq!(list(of(&[]), 9).await, [], "of no workspace");
    let count = async |filter: &UsageFilter, limit| stores.usage.count_read(filter, limit).await.unwrap();
    assert_eq!((count(&all(), 9).await, count(&all(), 3).await), (4, 3), "at most the limit");
    assert_eq!(count(&UsageFilter { user: text("u"), ..of(&[1]) }, 9).await, 2, "other users are read, too");
    assert_eq!((count(&next, 9).await, count(&of(&[9]), 9).await), (2, 0));
}

fn days(since: i64, until: i64) -> UsageSumQuery {
    let day = |days: i64| (at(0) + TimeDelta::days(days)).date_naive();
    UsageSumQuery { since: day(since), until: day(until), ..UsageSumQuery::default() }
}

async fn sums(stores: &Stores, query: UsageSumQuery) -> Vec<UsageSum> {
    stores.usage.sum(&query, 100).await.unwrap()
}

async fn sums_follow_charges_and_late_charges(stores: &Stores) {
    insert_fixtures(stores).await;
    let of = |number: u64, workspace: u64, day: i64, provider: &str| UsageRecord {
        cost: Usd::from_pico(10_i64.pow(u32::try_from(number).unwrap())),
        input_tokens: number,
        output_tokens: 2 * number,
        charged_at: at(0) + TimeDelta::days(day),
        provider: provider.to_owned(),
        user: (number < 3).then(|| "u".to_owned()),
        ..record(number, workspace)
    };
    let abandoned = UsageRecord { outcome: UsageOutcome::Abandoned, provider: "x".to_owned(), ..of(4, 2, 1, "x") };
    for charge in
        [of(1, 1, 0, "alpha"), of(2, 1, 0, "alpha"), of(3, 1, 1, "beta"), abandoned.clone(), of(5, 2, 3, "beta")]
    {
        settle(stores, charge).await.unwrap();
    }
    let total = async || sums(stores, days(0, 9)).await;
    let expected = UsageTotals { requests: 5, input_tokens: 15, output_tokens: 30, cost: Usd::from_pico(111_110) };
    assert_eq!(total().await, [UsageSum { totals: expected, ..UsageSum::default() }]);
    // The charge of an abandoned request arrives late, for another provider.
    settle(stores, of(4, 2, 1, "alpha")).await.unwrap();
    settle(stores, abandoned).await.unwrap();
    settle(stores, of(5, 1, 0, "again")).await.unwrap();
    assert_eq!(total().await[0].totals, expected, "each record counts once");
    let by = |groups: &[UsageGroup]| UsageSumQuery { groups: groups.to_vec(), ..days(0, 9) };
    let costs = |rows: Vec<UsageSum>| rows.iter().map(|row| row.totals.cost.pico()).collect::<Vec<_>>();
    let found = sums(stores, by(&[UsageGroup::Day, UsageGroup::Provider])).await;
    let names: Vec<_> = found.iter().map(|row| (row.day.unwrap(), row.provider.as_deref().unwrap())).collect();
    let day = |days: i64| (at(0) + TimeDelta::days(days)).date_naive();
    assert_eq!(names, [(day(0), "alpha"), (day(1), "alpha"), (day(1), "beta"), (day(3), "beta")]);
    assert_eq!(costs(found), [110, 10_000, 1_000, 100_000]);
    let found = sums(stores, by(&[UsageGroup::Workspace, UsageGroup::Key])).await;
    let ids: Vec<_> = found.iter().map(|row| (row.workspace_id.unwrap(), row.api_key.unwrap())).collect();
    assert_eq!(ids.iter().map(|ids| ids.0).collect::<Vec<_>>(), [workspace_id(1), workspace_id(2)]);
    assert!(found.iter().all(|row| row.workspace_name.is_some()), "{found:?}");
    assert_eq!(costs(found), [1_110, 110_000]);
    assert_eq!(costs(sums(stores, by(&[UsageGroup::Model])).await), [111_110]);
    assert_eq!(costs(sums(stores, UsageSumQuery { provider: Some("alpha".to_owned()), ..days(0, 9) }).await), [10_110]);
    assert_eq!(
        costs(sums(stores, UsageSumQuery { workspaces: Some(vec![workspace_id(2)]), ..days(0, 9) }).await),
        [110_000]
    );
    assert_eq!(sums(stores, UsageSumQuery { workspaces: Some(Vec::new()), ..days(0, 9) }).await, []);
    assert_eq!(
        costs(sums(stores, UsageSumQuery { api_key: Some(ids[0].1), ..days(0, 9) }).await).iter().sum::<i64>() % 10,
        0
    );
    assert_eq!(costs(sums(stores, days(1, 3)).await), [11_000], "the last day is excluded");
    assert_eq!(stores.usage.sum(&by(&[UsageGroup::Day]), 2).await.unwrap().len(), 2);
    for groups in [
        &[][..],
        &[UsageGroup::Day],
        &[UsageGroup::Provider, UsageGroup::Day],
        &[UsageGroup::Day, UsageGroup::Provider],
        &[UsageGroup::Workspace, UsageGroup::Key],
        &[UsageGroup::User, UsageGroup::Day],
        &[UsageGroup::Day, UsageGroup::User],
    ] {
        let (mut parts, mut query) = (Vec::new(), by(groups));
        while let Some(row) = stores.usage.sum(&query, 1).await.unwrap().pop() {
            query.after = Some(Box::new(row.clone()));
            parts.push(row);
        }
        assert_eq!(parts, sums(stores, by(groups)).await, "{groups:?}");
    }
    // End users are summed from records.
    let users = sums(stores, by(&[UsageGroup::User, UsageGroup::Day])).await;
    let costs_of_users: Vec<_> =
        users.iter().filter(|row| row.user.is_some()).map(|row| row.totals.cost.pico()).collect();
    assert_eq!((users.len(), costs_of_users), (3, vec![110]));
    assert_eq!(costs(sums(stores, UsageSumQuery { user: Some("u".to_owned()), ..days(0, 9) }).await), [110]);
    assert_eq!(sums(stores, UsageSumQuery { user: Some("v".to_owned()), ..days(0, 9) }).await, []);
}

async fn sums_outlive_records_until_their_own_retention(stores: &Stores) {
    insert_fixtures(stores).await;
    let old = UsageRecord { charged_at: at(0) - TimeDelta::days(4_000), ..record(1, 1) };
    let day = old.charged_at.date_naive();
    settle(stores, old).await.unwrap();
    settle(stores, record(2, 1)).await.unwrap();
    let query = || UsageSumQuery {
        groups: vec![UsageGroup::Day],
        since: day,
        until: day + Days::new(5_000),
        ..UsageSumQuery::default()
    };
    let requests = async || sums(stores, query()).await.iter().map(|row| row.totals.requests).collect::<Vec<_>>();
    let removed = stores.maintenance.prune(Duration::from_hours(24 * 3_000), 10).await.unwrap().removed;
    assert_eq!((removed, requests().await), (1, vec![1, 1]));
    let end = (day + Days::new(1)).and_time(NaiveTime::MIN).and_utc();
    let prune = async |before| stores.maintenance.prune_sums(before, 10).await.unwrap();
    assert_eq!(prune(end - TimeDelta::milliseconds(1)).await, 0, "the day has not ended");
    assert_eq!((prune(end).await, prune(end).await), (1, 0));
    assert_eq!(requests().await, [1]);
}

async fn walk_over_pages_is_one_read_while_others_write(stores: &Stores) {
    insert_fixtures(stores).await;
    // Three records a time of charge.
    let of = |number: u64| {
        let day = TimeDelta::days(i64::try_from(number / 3).unwrap());
        UsageRecord { charged_at: at(0) + day, ..record(number, 1) }
    };
    for number in 1..=20 {
        settle(stores, of(number)).await.unwrap();
    }
    let filter = UsageFilter::for_workspace(workspace_id(1));
    let whole = stores.usage.list(&filter, 100).await.unwrap();
    assert_eq!(whole.len(), 20);
    for limit in [1, 2, 7, 20] {
        let (mut walked, mut filter, mut newer) = (Vec::new(), filter.clone(), 100 * limit);
        loop {
            let page = stores.usage.list(&filter, limit).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some((last.charged_at, last.id.clone()));
            walked.extend(page);
            newer += 1;
            settle(stores, of(newer)).await.unwrap();
        }
        let newest: Vec<_> = walked.iter().rev().take(20).rev().cloned().collect();
        assert_eq!(newest, whole, "pages of {limit}");
        let mut ids: Vec<_> = walked.iter().map(|record| record.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), walked.len(), "no record twice, pages of {limit}");
    }
}

async fn last_use_is_the_start_of_the_newest_record(stores: &Stores) {
    insert_fixtures(stores).await;
    for number in [1, 3, 2] {
        let created_at = at(60 * i64::try_from(number).unwrap());
        let charged_at = created_at + TimeDelta::milliseconds(1);
        settle(stores, UsageRecord { charged_at, created_at, ..record(number, 1) }).await.unwrap();
    }
    let of = record(1, 1).api_key;
    let found = stores.usage.last_use(&[key_id(2), of, key_id(99)]).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(of, at(180))]);
    assert!(stores.usage.last_use(&[]).await.unwrap().is_empty());
}

async fn concurrent_charges_are_all_recorded(stores: &Stores) {
    insert_fixtures(stores).await;
    join_all((1..=100).map(|number| async move { settle(stores, record(number, 1)).await.unwrap() })).await;
    let listed = stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 1_000).await.unwrap();
    let expected: Vec<UsageRecord> = (1..=100).rev().map(|number| record(number, 1)).collect();
    assert_eq!(listed, expected);
}

async fn concurrent_charges_of_one_id_record_once(stores: &Stores) {
    insert_fixtures(stores).await;
    join_all((1..=20).map(|pico| async move {
        let rival = UsageRecord { cost: Usd::from_pico(pico), ..record(1, 1) };
        settle(stores, rival).await.expect("a record that is there already is no error");
    }))
    .await;
    assert_eq!(stores.usage.list(&UsageFilter::for_workspace(workspace_id(1)), 100).await.unwrap().len(), 1);
}
