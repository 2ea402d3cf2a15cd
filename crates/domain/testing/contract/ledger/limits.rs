//! Limits.

use super::super::Stores;
use super::super::samples::{
    add_guardrail, add_key, audit, guardrail, guardrail_id, inference_key, key_id, placed, update_guardrail,
    workspace_id,
};
use super::fixtures::{
    id, insert_fixtures, limit_key, limit_statuses, limit_workspace, payer, payer_under, reserve, spend, usd, used, utc,
};
use crate::api_key::ApiKey;
use crate::budget::{BudgetScope, LimitExceeded, Payer, ResetInterval, SpendLimit, WorkspaceBudgets};
use crate::guardrail::Guardrail;
use crate::testing::{add_credit, clear_credit};

fn guardrail_with(number: u64, pico: i64, reset: Option<ResetInterval>) -> Guardrail {
    Guardrail { budget: Some(SpendLimit { amount: usd(pico), reset }), ..guardrail(number, 1) }
}

fn resets_at(reset: Option<ResetInterval>) -> Option<chrono::DateTime<chrono::Utc>> {
    reset.map(|reset| match reset {
        ResetInterval::Daily => utc("2026-07-16T00:00:00Z"),
        ResetInterval::Weekly => utc("2026-07-20T00:00:00Z"),
        ResetInterval::Monthly => utc("2026-08-01T00:00:00Z"),
    })
}

const RESETS: [Option<ResetInterval>; 4] =
    [None, Some(ResetInterval::Daily), Some(ResetInterval::Weekly), Some(ResetInterval::Monthly)];

/// Spends 30 and holds 50 of a limit of 100: 20 fit, and 21 do not.
async fn binds(stores: &Stores, payer: &Payer, number: u64, expected: LimitExceeded) {
    spend(stores, number, payer, 30).await;
    reserve(stores, number + 1, payer, 50).await.unwrap();
    assert_eq!(reserve(stores, number + 2, payer, 21).await, Err(expected));
    reserve(stores, number + 3, payer, 20).await.unwrap();
    for reserved in [number + 1, number + 3] {
        stores.ledger.release(&id(reserved)).await.unwrap();
    }
}

fn exceeded_limit(scope: BudgetScope, reset: Option<ResetInterval>) -> LimitExceeded {
    LimitExceeded {
        scope,
        guardrail_id: None,
        is_credit: false,
        limit: usd(100),
        reset,
        spent: usd(30),
        reserved: usd(50),
        wanted: usd(21),
        resets_at: resets_at(reset),
        is_uncertain: false,
    }
}

pub(super) async fn each_limit_binds_independently(stores: &Stores) {
    insert_fixtures(stores).await;
    // A payer for each limit; workspace 1 has no limit until the last case.
    for (number, reset) in (10..).zip(RESETS) {
        let limit = Some(SpendLimit { amount: usd(100), reset });
        add_key(stores, &ApiKey { limit, ..inference_key(number, 1) }).await;
        let payer = Payer { api_key: key_id(number), ..payer(1) };
        binds(stores, &payer, number * 10, exceeded_limit(BudgetScope::Key, reset)).await;
    }
    for (number, reset) in (20..).zip(RESETS) {
        add_guardrail(stores, &guardrail_with(number, 100, reset)).await;
        let expected =
            LimitExceeded { guardrail_id: Some(guardrail_id(number)), ..exceeded_limit(BudgetScope::Guardrail, reset) };
        binds(stores, &payer_under(1, &[99, number]), number * 10, expected).await;
    }
    for (number, reset) in (30..).zip(RESETS) {
        super::super::samples::add_workspace(stores, number).await;
        add_key(stores, &ApiKey { limit: None, ..inference_key(number, number) }).await;
        let of = |wanted| (reset == wanted).then_some(usd(100));
        let budgets = WorkspaceBudgets {
            daily: of(Some(ResetInterval::Daily)),
            weekly: of(Some(ResetInterval::Weekly)),
            monthly: of(Some(ResetInterval::Monthly)),
            lifetime: of(None),
        };
        limit_workspace(stores, number, budgets).await;
        binds(stores, &payer(number), number * 10, exceeded_limit(BudgetScope::Workspace, reset)).await;
    }
    add_credit(&*stores.workspaces, workspace_id(2), usd(100), &audit()).await.unwrap();
    let expected = LimitExceeded { is_credit: true, ..exceeded_limit(BudgetScope::Workspace, None) };
    binds(stores, &payer(2), 400, expected).await;
}

pub(super) async fn limit_binds_its_owner_only(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((10, None))).await;
    add_key(stores, &ApiKey { limit: None, ..inference_key(3, 1) }).await;
    let sibling = Payer { api_key: key_id(3), ..payer(1) };
    reserve(stores, 1, &payer(1), 10).await.unwrap();
    reserve(stores, 2, &sibling, 1_000).await.unwrap();
    reserve(stores, 3, &payer(2), 1_000).await.unwrap();
    limit_workspace(stores, 1, WorkspaceBudgets { monthly: Some(usd(1_015)), ..WorkspaceBudgets::default() }).await;
    let refused = reserve(stores, 4, &sibling, 6).await.unwrap_err();
    assert_eq!((refused.scope, refused.reserved), (BudgetScope::Workspace, usd(1_010)), "all keys count");
    reserve(stores, 4, &payer(2), 6).await.unwrap();
}

pub(super) async fn credit_is_spent_and_added(stores: &Stores) {
    insert_fixtures(stores).await;
    let add = async |pico| add_credit(&*stores.workspaces, workspace_id(1), usd(pico), &audit()).await.unwrap();
    let left = async || stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit;
    spend(stores, 1, &payer(1), 1_000).await;
    assert_eq!(left().await, None);
    assert_eq!(add(100).await, Some(usd(100)), "what was spent before is not taken from it");
    spend(stores, 2, &payer(1), 30).await;
    assert_eq!(left().await, Some(usd(70)));
    let refused = reserve(stores, 3, &payer(1), 71).await.unwrap_err();
    assert!(refused.is_credit && !refused.waits_for_others());
    assert_eq!((refused.limit, refused.spent), (usd(100), usd(30)));
    reserve(stores, 3, &payer(1), 70).await.unwrap();
    assert_eq!(left().await, Some(usd(70)), "what is reserved is not spent");
    assert!(reserve(stores, 4, &payer(1), 1).await.unwrap_err().waits_for_others());
    assert_eq!(add(5).await, Some(usd(75)));
    reserve(stores, 4, &payer(1), 5).await.unwrap();
    spend(stores, 3, &payer(1), 90).await;
    assert_eq!(left().await, Some(usd(-15)), "what is billed above what was reserved is owed");
    assert!(clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap());
    reserve(stores, 5, &payer(1), 1_000_000).await.unwrap();
    assert_eq!(add(7).await, Some(usd(7)), "credit begins anew");
    let limit_statuses = limit_statuses(stores, &payer(1)).await;
    assert_eq!((limit_statuses[0].limit, limit_statuses[0].spent), (usd(7), usd(0)));
}

pub(super) async fn limit_can_be_lowered_below_holds(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((100, None))).await;
    reserve(stores, 1, &payer(1), 80).await.unwrap();
    limit_key(stores, 1, Some((50, None))).await;
    let refused = reserve(stores, 2, &payer(1), 1).await.unwrap_err();
    assert_eq!((refused.limit, refused.reserved), (usd(50), usd(80)));
    assert!(stores.ledger.increase(&id(1), usd(1), &[]).await.unwrap().is_err());
    spend(stores, 1, &payer(1), 60).await;
    assert!(!reserve(stores, 2, &payer(1), 1).await.unwrap_err().waits_for_others());
    limit_key(stores, 1, Some((61, None))).await;
    reserve(stores, 2, &payer(1), 1).await.unwrap();
}

pub(super) async fn limit_can_change_at_any_time(stores: &Stores) {
    insert_fixtures(stores).await;
    reserve(stores, 1, &payer(1), 80).await.unwrap();
    spend(stores, 2, &payer(1), 15).await;
    limit_key(stores, 1, Some((100, Some(ResetInterval::Daily)))).await;
    let refused = reserve(stores, 3, &payer(1), 6).await.unwrap_err();
    assert_eq!((refused.spent, refused.reserved), (usd(15), usd(80)), "what came before the limit counts");
    limit_key(stores, 1, Some((100, Some(ResetInterval::Monthly)))).await;
    assert_eq!(used(stores, &payer(1)).await, (15, 80));
    limit_key(stores, 1, None).await;
    reserve(stores, 3, &payer(1), 6).await.unwrap();
}

pub(super) async fn guardrail_budgets_count_per_key(stores: &Stores) {
    insert_fixtures(stores).await;
    add_key(stores, &ApiKey { limit: None, ..inference_key(3, 1) }).await;
    add_guardrail(stores, &guardrail_with(1, 100, None)).await;
    add_guardrail(stores, &guardrail_with(2, 60, Some(ResetInterval::Daily))).await;
    let (first, second) = (payer_under(1, &[1]), Payer { api_key: key_id(3), ..payer_under(1, &[1]) });
    reserve(stores, 1, &first, 100).await.unwrap();
    reserve(stores, 2, &second, 100).await.expect("each key has a budget of its own");
    assert!(reserve(stores, 3, &first, 1).await.is_err());
    stores.ledger.release(&id(2)).await.unwrap();
    let both = Payer { api_key: key_id(3), ..payer_under(1, &[1, 2]) };
    let refused = reserve(stores, 4, &both, 61).await.unwrap_err();
    assert_eq!(refused.guardrail_id, Some(guardrail_id(2)), "each guardrail binds on its own");
    reserve(stores, 4, &both, 60).await.unwrap();
    let refused = reserve(stores, 5, &second, 41).await.unwrap_err();
    assert_eq!((refused.guardrail_id, refused.reserved), (Some(guardrail_id(1)), usd(60)));
    // Spend without a guardrail counts for no guardrail.
    spend(stores, 6, &Payer { api_key: key_id(3), ..payer(1) }, 1_000).await;
    reserve(stores, 5, &second, 40).await.unwrap();
    let unlimited = Guardrail { budget: None, version: 2, ..guardrail_with(1, 1, None) };
    assert!(update_guardrail(&*stores.guardrails, &unlimited, [false; 2], &audit()).await.unwrap());
    reserve(stores, 7, &second, 1_000).await.expect("a removed budget has no effect");
    assert!(stores.guardrails.delete(&placed(2, 1, false), &audit()).await.unwrap());
    reserve(stores, 8, &both, 1_000).await.expect("nor does a guardrail that is gone");
}
