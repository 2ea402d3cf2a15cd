//! Cases of [`crate::workspace::WorkspaceRepository`].

use super::super::{delete_key, join_all};
use super::Stores;
use super::samples::{
    add_guardrail, add_workspace, at, audit, changed_since, guardrail, guardrail_id, inference_key, key_id,
    management_key, newest_change, workspace, workspace_id,
};
use super::workspace_deletion::{delete_accepts_empty_workspaces_only, deleted_workspace_does_not_exist};
use crate::api_key::LastKeyRule;
use crate::authority::{ManagementAccess, ManagementScope};
use crate::budget::WorkspaceBudgets;
use crate::change_feed::ChangeSubject;
use crate::money::Usd;
use crate::naming::ResourceName;
use crate::testing::{add_credit, clear_credit};
use crate::workspace::{
    Credit, Workspace, WorkspaceError, WorkspaceInsertion, WorkspaceName, WorkspaceSlug, WorkspaceUpdate,
};

suite! {
    /// Every case of the port's contract.
    workspace_repository_cases as workspace_repository_contract over Stores {
        find_returns_inserted_workspace,
        list_is_oldest_first,
        find_named_matches_id_slug_and_name_within_scope,
        page_is_oldest_first_and_counts_the_scope,
        insert_with_unique_name_rejects_names_of_existing_workspaces,
        concurrent_unique_inserts_succeed_once,
        insert_rejects_slugs_of_existing_workspaces,
        default_workspace_gets_free_slug,
        default_or_insert_creates_one_default,
        concurrent_calls_agree_on_one_default,
        bootstrap_succeeds_once,
        concurrent_bootstraps_succeed_once,
        bootstrap_counts_deleted_keys,
        delete_accepts_empty_workspaces_only,
        deleted_workspace_does_not_exist,
        update_replaces_settings_and_budgets_and_writes_the_feed,
        update_is_rejected_when_any_setting_changed,
        concurrent_updates_succeed_once,
        update_rejects_slug_and_guardrail_of_another_workspace,
        first_credit_is_a_change_of_the_workspace,
        add_credit_adds_to_balance,
        concurrent_credits_add_up,
        add_credit_rejects_sum_out_of_range,
        rejected_credit_edit_changes_nothing,
    }
}

async fn find_returns_inserted_workspace(stores: &Stores) {
    let repository = &stores.workspaces;
    assert_eq!(repository.find(workspace_id(1)).await.unwrap(), None);
    let full = Workspace { suspended: true, credit: Some(Usd::from_pico(-7)), updated_at: Some(at(9)), ..workspace(1) };
    let bare = Workspace { description: None, owner_id: None, ..workspace(2) };
    repository.insert(&full, false, &audit()).await.unwrap();
    repository.insert(&bare, false, &audit()).await.unwrap();
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

fn scope(numbers: &[u64]) -> ManagementScope {
    let ids = numbers.iter().map(|number| workspace_id(*number)).collect();
    ManagementScope::try_new(ManagementAccess::Read, Some(ids)).unwrap()
}

async fn find_named_matches_id_slug_and_name_within_scope(stores: &Stores) {
    let repository = &stores.workspaces;
    for number in [1, 2] {
        add_workspace(stores, number).await;
    }
    // The name of another workspace is the slug of the first.
    let namesake = Workspace { name: WorkspaceName::try_new("w-1").unwrap(), ..workspace(3) };
    repository.insert(&namesake, false, &audit()).await.unwrap();
    let all = ManagementScope::UNRESTRICTED;
    let named = async |text: &str, within: &ManagementScope| {
        repository.find_named(&ResourceName::new(text), within).await.unwrap()
    };
    assert_eq!(named(&workspace_id(1).to_string(), &all).await, [workspace(1)]);
    assert_eq!(named("w-2", &all).await, [workspace(2)]);
    assert_eq!(named("wörk 2", &all).await, [workspace(2)]);
    assert_eq!(named("w-1", &all).await, [workspace(1)], "the slug wins");
    assert_eq!(named("w-1", &scope(&[2, 3])).await, [namesake]);
    assert_eq!(named(&workspace_id(1).to_string(), &scope(&[2])).await, []);
    for unknown in ["", "W-2", "w-", "%", "wörk _", "x' OR 1=1", &workspace_id(9).to_string()] {
        assert_eq!(named(unknown, &all).await, [], "{unknown}");
    }
    for number in 11..31 {
        let same = Workspace { name: workspace(2).name, ..workspace(number) };
        repository.insert(&same, false, &audit()).await.unwrap();
    }
    assert_eq!(named("wörk 2", &all).await.len(), ResourceName::MAX_MATCHES);
}

async fn page_is_oldest_first_and_counts_the_scope(stores: &Stores) {
    let repository = &stores.workspaces;
    for number in [2, 3, 1] {
        add_workspace(stores, number).await;
    }
    let same_time = Workspace { created_at: workspace(3).created_at, ..workspace(4) };
    repository.insert(&same_time, false, &audit()).await.unwrap();
    let all = ManagementScope::UNRESTRICTED;
    let page = async |within: &ManagementScope, offset, limit| repository.page(within, offset, limit).await.unwrap();
    assert_eq!(page(&all, 0, 2).await, (vec![workspace(1), workspace(2)], 4));
    assert_eq!(page(&all, 2, 9).await, (vec![workspace(3), same_time], 4));
    assert_eq!(page(&all, 4, 9).await, (Vec::new(), 4));
    assert_eq!(page(&scope(&[3, 1, 9]), 1, 1).await, (vec![workspace(3)], 2));
}

async fn insert_with_unique_name_rejects_names_of_existing_workspaces(stores: &Stores) {
    let repository = &stores.workspaces;
    let named = |number| Workspace { name: workspace(1).name, ..workspace(number) };
    let insert_unique = async |workspace| repository.insert(&workspace, true, &audit()).await.unwrap();
    assert_eq!(insert_unique(workspace(1)).await, WorkspaceInsertion::Inserted);
    assert_eq!(insert_unique(named(2)).await, WorkspaceInsertion::NameTaken);
    assert_eq!(repository.list().await.unwrap(), [workspace(1)], "nothing is added");
    assert_eq!(repository.insert(&named(3), false, &audit()).await.unwrap(), WorkspaceInsertion::Inserted);
    for number in [1, 3] {
        repository.delete(&named(number), false, 0, &audit()).await.unwrap();
    }
    assert_eq!(insert_unique(named(4)).await, WorkspaceInsertion::Inserted, "the name of deleted workspaces is free");
}

async fn concurrent_unique_inserts_succeed_once(stores: &Stores) {
    let rivals = (1..=8).map(|number| {
        let repository = &stores.workspaces;
        let workspace = Workspace { name: workspace(1).name, ..workspace(number) };
        async move { repository.insert(&workspace, true, &audit()).await.unwrap() }
    });
    let inserted = join_all(rivals).await;
    assert_eq!(inserted.iter().filter(|inserted| **inserted == WorkspaceInsertion::Inserted).count(), 1);
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
    assert!(stores.api_keys.insert(&inference_key(7, 1), &audit()).await.unwrap().is_inserted());
    assert!(
        stores.workspaces.bootstrap(&workspace(2), &management_key(1), &audit()).await.unwrap(),
        "no management key yet"
    );
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(
        !stores.workspaces.bootstrap(&workspace(3), &management_key(2), &audit()).await.unwrap(),
        "deleted ones count"
    );
    assert_eq!(stores.api_keys.list(None).await.unwrap(), []);
}

/// Returns a workspace with a change of each setting and budget alone.
fn variants(before: &Workspace) -> Vec<Workspace> {
    let change = |change: fn(&mut Workspace)| {
        let mut changed = before.clone();
        change(&mut changed);
        changed
    };
    vec![
        change(|workspace| workspace.name = WorkspaceName::try_new("büro 2").unwrap()),
        change(|workspace| workspace.slug = WorkspaceSlug::try_new("other").unwrap()),
        change(|workspace| workspace.description = None),
        change(|workspace| workspace.owner_id = None),
        change(|workspace| workspace.suspended = true),
        change(|workspace| workspace.budgets.daily = Some(Usd::from_pico(1))),
        change(|workspace| workspace.budgets.weekly = Some(Usd::from_pico(2))),
        change(|workspace| workspace.budgets.monthly = Some(Usd::from_pico(3))),
        change(|workspace| workspace.budgets.lifetime = Some(Usd::from_pico(i64::MAX))),
        change(|workspace| workspace.rates.requests_per_minute = Some(1)),
        change(|workspace| workspace.rates.tokens_per_minute = Some(u32::MAX)),
        change(|workspace| workspace.default_guardrail_id = Some(guardrail_id(7))),
    ]
}

async fn update_replaces_settings_and_budgets_and_writes_the_feed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(7, 1)).await;
    let (repository, id) = (&stores.workspaces, workspace_id(1));
    for (after, minutes) in variants(&workspace(1)).into_iter().zip(1..) {
        let after = Workspace { updated_at: Some(at(minutes)), ..after };
        for after in [after, workspace(1)] {
            let (before, newest) = (repository.find(id).await.unwrap().unwrap(), newest_change(stores).await);
            let updated = repository.update(&before, &after, &audit()).await.unwrap();
            assert_eq!(updated, WorkspaceUpdate::Updated);
            assert_eq!(repository.find(id).await.unwrap(), Some(after), "field by field");
            assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Workspace(id)], "cached keys carry it");
        }
    }
    let unknown = repository.update(&workspace(2), &workspace(2), &audit()).await.unwrap();
    assert_eq!(unknown, WorkspaceUpdate::Differs, "there is no such workspace");
}

/// A change that is based on an outdated setting fails, whichever it is.
async fn update_is_rejected_when_any_setting_changed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(7, 1)).await;
    let (repository, before) = (&stores.workspaces, workspace(1));
    let stale =
        Workspace { budgets: WorkspaceBudgets { daily: Some(Usd::from_pico(9)), ..before.budgets }, ..before.clone() };
    for rival in variants(&before) {
        assert_eq!(repository.update(&before, &rival, &audit()).await.unwrap(), WorkspaceUpdate::Updated);
        let newest = newest_change(stores).await;
        assert_eq!(repository.update(&before, &stale, &audit()).await.unwrap(), WorkspaceUpdate::Differs, "{rival:?}");
        assert_eq!(changed_since(stores, newest).await, []);
        assert_eq!(repository.find(before.id).await.unwrap().as_ref(), Some(&rival), "nothing was changed");
        assert_eq!(repository.update(&rival, &before, &audit()).await.unwrap(), WorkspaceUpdate::Updated);
    }
}

async fn concurrent_updates_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rivals = (1..=8).map(|pico| {
        let before = workspace(1);
        let after = Workspace {
            budgets: WorkspaceBudgets { daily: Some(Usd::from_pico(pico)), ..before.budgets },
            ..before.clone()
        };
        async move { stores.workspaces.update(&before, &after, &audit()).await.unwrap() }
    });
    let updates = join_all(rivals).await;
    assert_eq!(updates.iter().filter(|update| **update == WorkspaceUpdate::Updated).count(), 1);
}

async fn update_rejects_slug_and_guardrail_of_another_workspace(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    add_guardrail(stores, &guardrail(7, 2)).await;
    let (repository, before) = (&stores.workspaces, workspace(1));
    let newest = newest_change(stores).await;
    let taken = Workspace { slug: workspace(2).slug, ..before.clone() };
    assert_eq!(repository.update(&before, &taken, &audit()).await.unwrap(), WorkspaceUpdate::SlugTaken);
    for unknown in [7, 8] {
        let foreign = Workspace { default_guardrail_id: Some(guardrail_id(unknown)), ..before.clone() };
        assert_eq!(repository.update(&before, &foreign, &audit()).await.unwrap(), WorkspaceUpdate::UnknownGuardrail);
    }
    assert_eq!(changed_since(stores, newest).await, []);
    assert_eq!(repository.find(before.id).await.unwrap(), Some(before), "nothing was changed");
}

async fn insert_rejects_slugs_of_existing_workspaces(stores: &Stores) {
    let repository = &stores.workspaces;
    let slugged = |number| Workspace { slug: workspace(1).slug, ..workspace(number) };
    let rivals = join_all((1..=8).map(|number| {
        let workspace = slugged(number);
        async move { stores.workspaces.insert(&workspace, false, &audit()).await.unwrap() }
    }));
    let inserted = rivals.await;
    assert_eq!(inserted.iter().filter(|inserted| **inserted == WorkspaceInsertion::Inserted).count(), 1);
    assert_eq!(inserted.iter().filter(|inserted| **inserted == WorkspaceInsertion::SlugTaken).count(), 7);
    let slug = workspace(1).slug;
    assert_eq!(repository.free_slug(&slug).await.unwrap(), slug.numbered(2));
    let second = Workspace { slug: slug.numbered(2), ..workspace(9) };
    assert_eq!(repository.insert(&second, false, &audit()).await.unwrap(), WorkspaceInsertion::Inserted);
    assert_eq!(repository.free_slug(&slug).await.unwrap(), slug.numbered(3));
    let winner = repository.list().await.unwrap()[0].id;
    let winner = repository.find(winner).await.unwrap().unwrap();
    repository.delete(&winner, false, 0, &audit()).await.unwrap();
    assert_eq!(repository.free_slug(&slug).await.unwrap(), slug, "the slug of a deleted workspace is free");
    assert_eq!(repository.insert(&slugged(10), false, &audit()).await.unwrap(), WorkspaceInsertion::Inserted);
}

async fn default_workspace_gets_free_slug(stores: &Stores) {
    add_workspace(stores, 1).await;
    let default = Workspace { slug: workspace(1).slug, ..workspace(2) };
    let added = stores.workspaces.default_or_insert(&default, &audit()).await.unwrap();
    assert_eq!(added.slug, workspace(1).slug.numbered(2));
    assert_eq!(stores.workspaces.find(added.id).await.unwrap(), Some(added));
}

/// Cached keys carry whether spend is limited. If it is, the ledger reads the amount itself.
async fn first_credit_is_a_change_of_the_workspace(stores: &Stores) {
    add_workspace(stores, 1).await;
    let add = async |pico| {
        let before = newest_change(stores).await;
        add_credit(&*stores.workspaces, workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap().unwrap();
        newest_change(stores).await != before
    };
    assert!(add(10).await, "the first credit");
    assert!(!add(5).await, "more credit changes no cached key");
    let before = newest_change(stores).await;
    assert!(clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap());
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Workspace(workspace_id(1))], "no credit any more");
    assert!(add(0).await, "the first credit after none, of nothing");
}

async fn add_credit_adds_to_balance(stores: &Stores) {
    add_workspace(stores, 1).await;
    let add =
        async |pico| add_credit(&*stores.workspaces, workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap();
    assert_eq!(add(10).await, Some(Usd::from_pico(10)), "an unlimited workspace starts from zero");
    assert_eq!(add(-13).await, Some(Usd::from_pico(-3)), "a negative amount takes away");
    assert_eq!(stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit, Some(Usd::from_pico(-3)));
    let unknown = add_credit(&*stores.workspaces, workspace_id(2), Usd::from_pico(1), &audit()).await.unwrap();
    assert_eq!(unknown, None, "there is no such workspace");
}

async fn concurrent_credits_add_up(stores: &Stores) {
    add_workspace(stores, 1).await;
    join_all((1..=16).map(|pico| {
        let repository = &stores.workspaces;
        async move { add_credit(&**repository, workspace_id(1), Usd::from_pico(pico), &audit()).await.unwrap() }
    }))
    .await;
    let credit = stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().credit;
    assert_eq!(credit, Some(Usd::from_pico(136)), "no addition is lost");
}

async fn add_credit_rejects_sum_out_of_range(stores: &Stores) {
    for (number, edge, step) in [(1, i64::MAX, 1), (2, i64::MIN, -1)] {
        let full = Workspace { credit: Some(Usd::from_pico(edge)), created_at: at(0), ..workspace(number) };
        stores.workspaces.insert(&full, false, &audit()).await.unwrap();
        let beyond = add_credit(&*stores.workspaces, full.id, Usd::from_pico(step), &audit()).await;
        assert!(matches!(beyond, Err(WorkspaceError::CreditOutOfRange)), "{beyond:?}");
        assert_eq!(stores.workspaces.find(full.id).await.unwrap().unwrap().credit, full.credit, "and changes nothing");
    }
}

async fn rejected_credit_edit_changes_nothing(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_credit(&*stores.workspaces, workspace_id(1), Usd::from_pico(5), &audit()).await.unwrap();
    let before = newest_change(stores).await;
    let edit = |credit: &Credit| {
        assert_eq!(*credit, Credit { granted: Some(Usd::from_pico(5)), spent: Usd::ZERO });
        Err(WorkspaceError::NoCreditToTake)
    };
    let rejected = stores.workspaces.change_credit(workspace_id(1), &edit).await;
    assert!(matches!(rejected, Err(WorkspaceError::NoCreditToTake)), "{rejected:?}");
    assert_eq!(newest_change(stores).await, before);
    let expected = Credit { granted: Some(Usd::from_pico(5)), spent: Usd::ZERO };
    assert_eq!(stores.workspaces.credit(workspace_id(1)).await.unwrap(), Some(expected));
}
