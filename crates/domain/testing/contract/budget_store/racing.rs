//! Concurrent processes.

use super::super::Stores;
use super::super::ledger::fixtures::{insert_fixtures, limit_key, limit_workspace, payer, record, usd};
use super::setup::{Holder, ask, entry, key_of, noon, period};
use crate::budget::{Account, BudgetStoreError, ResetInterval, WorkspaceBudgets};
use crate::testing::join_all;

/// 64 draws by two processes, each with numbers in order.
pub(super) async fn concurrent_draws_never_exceed_a_limit(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((109, None))).await;
    limit_workspace(stores, 1, WorkspaceBudgets { daily: Some(usd(203)), ..WorkspaceBudgets::default() }).await;
    let payer = payer(1);
    let counters = [key_of(&payer), period(Account::Workspace(payer.workspace_id), ResetInterval::Daily, noon())];
    let granted = join_all([1, 2].map(async |number| {
        let process = Holder::register(stores, number).await;
        let mut granted = 0;
        for request in 0..32_u64 {
            if process.draw_one(stores, &payer, 10, &counters).await.is_ok() {
                granted += 1;
                // Some cost less, and return the rest.
                if request % 3 == 0 {
                    let id = u64::try_from(number).unwrap() * 1_000 + request;
                    let borne = counters.map(|counter| (counter, 4));
                    process.fold(stores, vec![entry(record(id, payer.clone(), 4, noon()), &borne)]).await;
                    process.return_allowances(stores, &counters.map(|counter| (counter, 6))).await;
                }
            }
        }
        (granted, process)
    }))
    .await;
    let probe = Holder::register(stores, 3).await;
    let denied = probe.draw_one(stores, &payer, 1_000, &counters[..1]).await.unwrap_err();
    let used = denied.spent.pico() + denied.reserved.pico();
    assert!(used <= 109 && used > 99, "{denied:?}");
    assert!(granted.iter().map(|(granted, _)| granted).sum::<i32>() >= 10);
}

pub(super) async fn concurrent_repetitions_take_effect_once(stores: &Stores) {
    insert_fixtures(stores).await;
    limit_key(stores, 1, Some((1_000, None))).await;
    let (payer, process) = (payer(1), Holder::register(stores, 1).await);
    let counter = key_of(&payer);
    let request = process.request(&[ask(&payer, 10, &[counter])], &[]);
    let replies = join_all((0..32).map(|_| stores.budget.draw(&request))).await;
    let replies: Result<Vec<_>, BudgetStoreError> = replies.into_iter().collect();
    let replies = replies.expect("every repetition is answered");
    assert!(replies.iter().all(|reply| *reply == replies[0]));
    let folding = process.fold_request(vec![entry(record(1, payer.clone(), 4, noon()), &[(counter, 4)])]);
    for folded in join_all((0..16).map(|_| stores.budget.fold(&folding))).await {
        folded.expect("every repetition is answered");
    }
    let probe = Holder::register(stores, 2).await;
    let denied = probe.draw_one(stores, &payer, 5_000, &[counter]).await.unwrap_err();
    assert_eq!((denied.spent, denied.reserved), (usd(4), usd(6)));
}
