//! Cases of [`crate::workspace::WorkspaceRepository`].

use super::super::join_all;
use super::Stores;
use super::samples::{
    add_workspace, at, audit, changed_since, inference_key, key_id, management_key, newest_change, workspace,
    workspace_id,
};
use super::workspace_deletion::{
    delete_accepts_empty_workspaces_only, deleted_workspace_does_not_exist, rename_changes_unchanged_name_only,
};
use crate::api_key::LastKeyRule;
use crate::budget::WorkspaceBudgets;
use crate::change_feed::ChangeSubject;
use crate::error::StoreError;
use crate::money::Usd;
use crate::rate::RateLimits;
use crate::workspace::Workspace;

suite! {
    /// Every case of the port's contract.
    workspace_repository_cases as workspace_repository_contract over Stores {
        find_returns_inserted_workspace,
        list_is_oldest_first,
        insert_unique_rejects_names_of_existing_workspaces,
        concurrent_unique_inserts_succeed_once,
        default_or_insert_creates_one_default,
        concurrent_calls_agree_on_one_default,
        bootstrap_succeeds_once,
        concurrent_bootstraps_succeed_once,
        bootstrap_counts_deleted_keys,
        rename_changes_unchanged_name_only,
        delete_accepts_empty_workspaces_only,
        deleted_workspace_does_not_exist,
        set_suspended_is_visible_and_writes_the_feed,
        set_budgets_changes_unchanged_budgets_only,
        set_rates_changes_unchanged_rates_only,
        budgets_change_is_rejected_when_any_other_budget_changed,
        rates_change_is_rejected_when_the_other_rate_changed,
        first_credit_is_a_change_of_the_workspace,
        add_credit_adds_to_balance,
        concurrent_credits_add_up,
        add_credit_rejects_sum_out_of_range,
    }
}

async fn find_returns_inserted_workspace(stores: &Stores) {
    let repository = &stores.workspaces;
    assert_eq!(repository.find(workspace_id(1)).await.unwrap(), None);
    let full = Workspace { suspended: true, credit: Some(Usd::from_pico(-7)), ..workspace(1) };
    let bare = Workspace { owner_id: None, ..workspace(2) };
    repository.insert(&full, &audit()).await.unwrap();
    repository.insert(&bare, &audit()).await.unwrap();
    assert_eq!(repository.find(full.id).await.unwrap(), Some(full), "field by field");
    assert_eq!(repository.find(bare.id).await.unwrap(), Some(bare), "field by field");
}

async fn list_is_oldest_first(stores: &Stores) {
    for number in [2, 3, 1] {
        add_workspace(stores, number).await;
    }
    let listed = stores.workspaces.list().await.unwrap();
    assert_eq!(listed, [workspace(1), workspace(2), workspace(3)]);
}

async fn insert_unique_rejects_names_of_existing_workspaces(stores: &Stores) {
    let repository = &stores.workspaces;
    let named = |number| Workspace { name: workspace(1).name, ..workspace(number) };
    assert!(repository.insert_unique(&workspace(1), &audit()).await.unwrap());
    assert!(!repository.insert_unique(&named(2), &audit()).await.unwrap());
    assert_eq!(repository.list().await.unwrap(), [workspace(1)], "nothing is added");
    repository.insert(&named(3), &audit()).await.unwrap();
    for number in [1, 3] {
        repository.delete(workspace_id(number), &audit()).await.unwrap();
    }
    assert!(repository.insert_unique(&named(4), &audit()).await.unwrap(), "the name of deleted workspaces is free");
}

async fn concurrent_unique_inserts_succeed_once(stores: &Stores) {
    let rivals = (1..=8).map(|number| {
        let repository = &stores.workspaces;
        let workspace = Workspace { name: workspace(1).name, ..workspace(number) };
        async move { repository.insert_unique(&workspace, &audit()).await.unwrap() }
    });
    assert_eq!(join_all(rivals).await.iter().filter(|inserted| **inserted).count(), 1);
}

async fn default_or_insert_creates_one_default(stores: &Stores) {
    let repository = &stores.workspaces;
    add_workspace(stores, 5).await;
    let first = repository.default_or_insert(&workspace(1), &audit()).await.unwrap();
    assert_eq!(first, Workspace { is_default: true, ..workspace(1) }, "where there is no default, it is added");
    let second = repository.default_or_insert(&workspace(2), &audit()).await.unwrap();
    assert_eq!(second, first, "where there is one, it is returned");
    assert_eq!(repository.find(workspace_id(2)).await.unwrap(), None, "and the other is not added");
    assert_eq!(repository.find(workspace_id(1)).await.unwrap(), Some(first));
}

async fn concurrent_calls_agree_on_one_default(stores: &Stores) {
    let rivals = (1..=8).map(|number| {
        let repository = &stores.workspaces;
        async move { repository.default_or_insert(&workspace(number), &audit()).await.unwrap().id }
    });
    let mut winners = join_all(rivals).await;
    winners.dedup();
    assert_eq!(winners.len(), 1, "everybody gets the same default");
    let listed = stores.workspaces.list().await.unwrap();
    assert_eq!(listed.iter().map(|workspace| workspace.id).collect::<Vec<_>>(), winners);
    assert!(listed[0].is_default);
}

async fn bootstrap_succeeds_once(stores: &Stores) {
    let repository = &stores.workspaces;
    assert!(repository.bootstrap(&workspace(1), &management_key(1), &audit()).await.unwrap());
    assert_eq!(stores.api_keys.find(&key_id(1).into()).await.unwrap(), Some(management_key(1)));
    assert!(
        !repository.bootstrap(&workspace(2), &management_key(2), &audit()).await.unwrap(),
        "a second time adds nothing"
    );
    assert_eq!(stores.api_keys.find(&key_id(2).into()).await.unwrap(), None);
    assert_eq!(repository.list().await.unwrap(), [Workspace { is_default: true, ..workspace(1) }]);
}

async fn concurrent_bootstraps_succeed_once(stores: &Stores) {
    let rivals = (1..=8).map(|number| {
        let repository = &stores.workspaces;
        async move { repository.bootstrap(&workspace(number), &management_key(number), &audit()).await.unwrap() }
    });
    let won = join_all(rivals).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "exactly one start makes the key");
    assert_eq!(stores.workspaces.list().await.unwrap().len(), 1);
    assert_eq!(stores.api_keys.list(None).await.unwrap().len(), 1);
}

async fn bootstrap_counts_deleted_keys(stores: &Stores) {
    stores.workspaces.default_or_insert(&workspace(1), &audit()).await.unwrap();
    assert!(stores.api_keys.insert(&inference_key(7, 1), &audit()).await.unwrap());
    assert!(
        stores.workspaces.bootstrap(&workspace(2), &management_key(1), &audit()).await.unwrap(),
        "no management key yet"
    );
    assert!(stores.api_keys.delete(key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(
        !stores.workspaces.bootstrap(&workspace(3), &management_key(2), &audit()).await.unwrap(),
        "deleted ones count"
    );
    assert_eq!(stores.api_keys.list(None).await.unwrap(), []);
}

async fn set_suspended_is_visible_and_writes_the_feed(stores: &Stores) {
    add_workspace(stores, 1).await;
    for suspended in [true, false] {
        let before = newest_change(stores).await;
        assert!(stores.workspaces.set_suspended(workspace_id(1), suspended, &audit()).await.unwrap());
        assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().suspended, suspended);
        assert_eq!(
            changed_since(stores, before).await,
            [ChangeSubject::Workspace(workspace_id(1))],
            "cached keys carry the workspace's state"
        );
    }
    assert!(
        !stores.workspaces.set_suspended(workspace_id(2), true, &audit()).await.unwrap(),
        "there is no such workspace"
    );
}

async fn set_budgets_changes_unchanged_budgets_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    let usd = |pico| Some(Usd::from_pico(pico));
    let states = [
        WorkspaceBudgets::default(),
        WorkspaceBudgets { daily: usd(1), weekly: usd(2), monthly: usd(3), lifetime: usd(i64::MAX) },
        WorkspaceBudgets { weekly: usd(5), ..WorkspaceBudgets::default() },
        WorkspaceBudgets::default(),
    ];
    let (repository, id) = (&stores.workspaces, workspace_id(1));
    for pair in states.windows(2) {
        let before = newest_change(stores).await;
        assert!(repository.set_budgets(id, &pair[0], &pair[1], &audit()).await.unwrap());
        assert_eq!(repository.find(id).await.unwrap().unwrap().budgets, pair[1]);
        assert_eq!(
            changed_since(stores, before).await,
            [ChangeSubject::Workspace(workspace_id(1))],
            "cached keys carry whether money is limited"
        );
        assert!(!repository.set_budgets(id, &pair[0], &pair[1], &audit()).await.unwrap(), "it is not so any more");
    }
    let unknown = repository.set_budgets(workspace_id(2), &states[0], &states[1], &audit()).await.unwrap();
    assert!(!unknown, "there is no such workspace");
    let rivals = (1..=8).map(|pico| {
        let after = WorkspaceBudgets { daily: usd(pico), ..WorkspaceBudgets::default() };
        async move { repository.set_budgets(id, &WorkspaceBudgets::default(), &after, &audit()).await.unwrap() }
    });
    assert_eq!(join_all(rivals).await.into_iter().filter(|won| *won).count(), 1, "of rival changes one wins");
}

async fn set_rates_changes_unchanged_rates_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    let states = [
        RateLimits::default(),
        RateLimits { requests_per_minute: Some(1), tokens_per_minute: None },
        RateLimits { requests_per_minute: Some(1), tokens_per_minute: Some(u32::MAX) },
        RateLimits::default(),
    ];
    let (repository, id) = (&stores.workspaces, workspace_id(1));
    for pair in states.windows(2) {
        let before = newest_change(stores).await;
        assert!(repository.set_rates(id, pair[0], pair[1], &audit()).await.unwrap());
        assert_eq!(repository.find(id).await.unwrap().unwrap().rates, pair[1]);
        assert_eq!(
            changed_since(stores, before).await,
            [ChangeSubject::Workspace(workspace_id(1))],
            "cached keys carry it"
        );
        assert!(!repository.set_rates(id, pair[0], pair[1], &audit()).await.unwrap(), "it is not so any more");
    }
    assert!(!repository.set_rates(workspace_id(2), states[0], states[1], &audit()).await.unwrap());
}

/// Every column is compared: a change based on an outdated budget must fail.
async fn budgets_change_is_rejected_when_any_other_budget_changed(stores: &Stores) {
    let (repository, usd) = (&stores.workspaces, |pico| Some(Usd::from_pico(pico)));
    let before = WorkspaceBudgets { daily: usd(1), weekly: usd(2), monthly: usd(3), lifetime: usd(4) };
    let changed = [
        WorkspaceBudgets { daily: usd(9), ..before },
        WorkspaceBudgets { weekly: None, ..before },
        WorkspaceBudgets { monthly: usd(9), ..before },
        WorkspaceBudgets { lifetime: None, ..before },
    ];
    for (number, rival) in (1..).zip(&changed) {
        let id = workspace_id(number);
        add_workspace(stores, number).await;
        assert!(repository.set_budgets(id, &WorkspaceBudgets::default(), &before, &audit()).await.unwrap());
        assert!(repository.set_budgets(id, &before, rival, &audit()).await.unwrap());
        for stale in changed.iter().filter(|stale| *stale != rival) {
            assert!(!repository.set_budgets(id, &before, stale, &audit()).await.unwrap(), "{stale:?} after {rival:?}");
        }
        assert!(!repository.set_budgets(id, &before, &before, &audit()).await.unwrap(), "no change, of another state");
        assert_eq!(repository.find(id).await.unwrap().unwrap().budgets, *rival);
    }
}

async fn rates_change_is_rejected_when_the_other_rate_changed(stores: &Stores) {
    let repository = &stores.workspaces;
    let before = RateLimits { requests_per_minute: Some(1), tokens_per_minute: Some(2) };
    let changed =
        [RateLimits { requests_per_minute: None, ..before }, RateLimits { tokens_per_minute: Some(9), ..before }];
    for (number, [rival, stale]) in [(1, changed), (2, [changed[1], changed[0]])] {
        let id = workspace_id(number);
        add_workspace(stores, number).await;
        assert!(repository.set_rates(id, RateLimits::default(), before, &audit()).await.unwrap());
        assert!(repository.set_rates(id, before, rival, &audit()).await.unwrap());
        assert!(!repository.set_rates(id, before, stale, &audit()).await.unwrap());
        assert!(!repository.set_rates(id, before, before, &audit()).await.unwrap(), "no change, of another state");
        assert_eq!(repository.find(id).await.unwrap().unwrap().rates, rival);
    }
}

/// Cached keys carry whether spend is limited. If it is, the ledger reads the amount itself.
async fn first_credit_is_a_change_of_the_workspace(stores: &Stores) {
    add_workspace(stores, 1).await;
    let add = async |pico| {
        let before = newest_change(stores).await;
        stores.workspaces.add_credit(workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap().unwrap();
        newest_change(stores).await != before
    };
    assert!(add(10).await, "the first credit");
    assert!(!add(5).await, "more credit changes no cached key");
    let before = newest_change(stores).await;
    assert!(stores.workspaces.clear_credit(workspace_id(1), &audit()).await.unwrap());
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Workspace(workspace_id(1))], "no credit any more");
    assert!(add(0).await, "the first credit after none, of nothing");
}

async fn add_credit_adds_to_balance(stores: &Stores) {
    add_workspace(stores, 1).await;
    let add = async |pico| stores.workspaces.add_credit(workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap();
    assert_eq!(add(10).await, Some(Usd::from_pico(10)), "an unlimited workspace starts from zero");
    assert_eq!(add(-13).await, Some(Usd::from_pico(-3)), "a negative amount takes away");
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(Usd::from_pico(-3)));
    let unknown = stores.workspaces.add_credit(workspace_id(2), Usd::from_pico(1), &audit()).await.unwrap();
    assert_eq!(unknown, None, "there is no such workspace");
}

async fn concurrent_credits_add_up(stores: &Stores) {
    add_workspace(stores, 1).await;
    join_all((1..=16).map(|pico| {
        let repository = &stores.workspaces;
        async move { repository.add_credit(workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap() }
    }))
    .await;
    let credit = stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit;
    assert_eq!(credit, Some(Usd::from_pico(136)), "no addition is lost");
}

async fn add_credit_rejects_sum_out_of_range(stores: &Stores) {
    for (number, edge, step) in [(1, i64::MAX, 1), (2, i64::MIN, -1)] {
        let full = Workspace { credit: Some(Usd::from_pico(edge)), created_at: at(0), ..workspace(number) };
        stores.workspaces.insert(&full, &audit()).await.unwrap();
        let beyond = stores.workspaces.add_credit(full.id, Usd::from_pico(step), &audit()).await;
        assert!(matches!(beyond, Err(StoreError::Corrupt(_))), "a sum out of range is refused: {beyond:?}");
        assert_eq!(stores.workspaces.find(full.id).await.unwrap().unwrap().credit, full.credit, "and changes nothing");
    }
}
