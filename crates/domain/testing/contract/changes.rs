//! Cases of [`crate::change_feed::ChangeFeed`].

use std::time::Duration;

use super::super::join_all;
use super::super::{assign_keys, delete_key, remove_keys, set_disabled};
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, audit, changed_since, guardrail, guardrail_id, hash, inference_key, key_id,
    limit_workspace, management_key, newest_change, placed, suspend, update_guardrail, workspace, workspace_id,
};
use crate::api_key::{KeyReference, KeyUpdate, LastKeyRule};
use crate::audit::Actor;
use crate::budget::{ResetInterval, SpendLimit, WorkspaceBudgets};
use crate::change_feed::{ChangePosition, ChangeSubject, Changes, MAX_NAMED_KEYS};
use crate::guardrail::Guardrail;
use crate::model::CatalogueChange;
use crate::money::Usd;
use crate::testing::{add_credit, clear_credit};
use crate::workspace::WorkspaceUpdate;

suite! {
    /// Every case of the port's contract.
    change_feed_cases as change_feed_contract over Stores {
        changes_name_their_subjects_in_order,
        transaction_that_changes_nothing_writes_nothing,
        key_creation_names_no_other_key,
        many_keys_are_one_change,
        effect_is_readable_when_its_change_is,
        numbers_have_no_gaps_when_writers_compete,
        reader_starts_over_where_the_feed_does_not_continue,
        changes_are_pruned_after_an_hour_but_not_the_newest,
        feed_continues_after_a_pause_of_any_length,
        only_changes_of_limits_raise_the_number_of_limits,
    }
}

async fn since(stores: &Stores, last: ChangePosition) -> Changes {
    stores.changes.changes_since(Some(last)).await.unwrap()
}

async fn disable(stores: &Stores, number: u64, disabled: bool) {
    assert!(set_disabled(&*stores.api_keys, key_id(number), disabled, LastKeyRule::Waived, &audit()).await.unwrap());
}

async fn changes_name_their_subjects_in_order(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    let (key, workspace) = (ChangeSubject::Key(hash(1)), ChangeSubject::Workspace(workspace_id(1)));
    let (rules, draft) = (ChangeSubject::Guardrail(guardrail_id(2)), audit());
    let first = newest_change(stores).await;
    let mut all = Vec::new();
    for step in 0..8 {
        let before = newest_change(stores).await;
        let expected = match step {
            0 => {
                assign_keys(&*stores.guardrails, guardrail_id(2), &[key_id(1).into()], &draft.actor).await.unwrap();
                vec![key]
            }
            1 => {
                suspend(stores, 1, true).await;
                vec![workspace]
            }
            2 => {
                disable(stores, 1, true).await;
                vec![key]
            }
            3 => {
                let changed = Guardrail { version: 2, ..guardrail(2, 1) };
                assert!(update_guardrail(&*stores.guardrails, &changed, [false, true], &draft).await.unwrap());
                vec![workspace, rules]
            }
            4 => {
                assert!(stores.guardrails.delete(&placed(2, 2, true), &draft).await.unwrap());
                vec![rules, workspace, key]
            }
            5 => {
                assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &draft).await.unwrap());
                vec![key]
            }
            _ => {
                let version = stores.models.version().await.unwrap();
                assert!(stores.models.apply(&CatalogueChange::default(), version, &draft).await.unwrap());
                assert!(stores.models.version().await.unwrap() > version);
                vec![ChangeSubject::Catalogue]
            }
        };
        assert_eq!(changed_since(stores, before).await, expected, "step {step}");
        all.extend(expected);
    }
    let Changes::Continued(changes) = since(stores, first).await else { panic!("the feed continues") };
    let numbers: Vec<u64> = changes.iter().map(|change| change.position.number).collect();
    assert_eq!(numbers, (first.number + 1..).take(all.len()).collect::<Vec<_>>());
    assert_eq!(changes.iter().map(|change| change.subject).collect::<Vec<_>>(), all);
    assert_eq!(changes.last().unwrap().position, newest_change(stores).await);
}

async fn transaction_that_changes_nothing_writes_nothing(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    assert!(stores.guardrails.insert(&guardrail(2, 1), true, &audit()).await.unwrap());
    assign_keys(&*stores.guardrails, guardrail_id(2), &[key_id(1).into()], &Actor::system()).await.unwrap();
    let before = newest_change(stores).await;
    disable(stores, 1, false).await;
    let key = stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap();
    assert_eq!(stores.api_keys.update(&key, &key, LastKeyRule::Waived, &audit()).await.unwrap(), KeyUpdate::Updated);
    assert!(!delete_key(&*stores.api_keys, key_id(9), LastKeyRule::Waived, &audit()).await.unwrap());
    let unknown = stores.workspaces.update(&workspace(9), &workspace(9), &audit()).await.unwrap();
    assert_eq!(unknown, WorkspaceUpdate::Differs);
    assign_keys(&*stores.guardrails, guardrail_id(2), &[key_id(1).into()], &Actor::system()).await.unwrap();
    assert!(
        !update_guardrail(&*stores.guardrails, &Guardrail { version: 7, ..guardrail(2, 1) }, [false; 2], &audit())
            .await
            .unwrap()
    );
    assert!(!stores.models.apply(&CatalogueChange::default(), 99, &audit()).await.unwrap());
    assert_eq!(since(stores, before).await, Changes::Continued(Vec::new()));
    assert_eq!(newest_change(stores).await, before);
}

async fn key_creation_names_no_other_key(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    let before = newest_change(stores).await;
    add_key(stores, &inference_key(2, 1)).await;
    add_key(stores, &management_key(3)).await;
    add_workspace(stores, 2).await;
    for subject in changed_since(stores, before).await {
        assert!(matches!(subject, ChangeSubject::Key(key) if key != hash(1)), "{subject:?}");
    }
}

/// Neither assignment nor removal nor deletion writes a row for each of many keys.
async fn many_keys_are_one_change(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    let many = MAX_NAMED_KEYS as u64 + 1;
    let hashes: Vec<_> = (1..=many).map(hash).collect();
    for number in 1..=many {
        add_key(stores, &inference_key(number, 1)).await;
    }
    let workspace = ChangeSubject::Workspace(workspace_id(1));
    let few = ChangeSubject::keys_of(workspace_id(1), &hashes[1..]);
    assert_eq!(few.len(), MAX_NAMED_KEYS);
    let names = |first: u64| (first..=many).map(|number| key_id(number).into()).collect::<Vec<KeyReference>>();
    let assign =
        async |first| assign_keys(&*stores.guardrails, guardrail_id(2), &names(first), &Actor::system()).await.unwrap();
    let remove =
        async |first| remove_keys(&*stores.guardrails, guardrail_id(2), &names(first), &Actor::system()).await.unwrap();

    let before = newest_change(stores).await;
    assert_eq!(assign(1).await, Some(many));
    assert_eq!(changed_since(stores, before).await, [workspace]);
    let before = newest_change(stores).await;
    assert_eq!(remove(1).await, Some(many));
    assert_eq!(changed_since(stores, before).await, [workspace]);
    let before = newest_change(stores).await;
    assert_eq!(assign(2).await, Some(many - 1));
    assert_eq!(changed_since(stores, before).await, few);
    let before = newest_change(stores).await;
    assert_eq!(remove(2).await, Some(many - 1));
    assert_eq!(changed_since(stores, before).await, few);
    assign(1).await;
    let before = newest_change(stores).await;
    assert!(stores.guardrails.delete(&placed(2, 1, false), &audit()).await.unwrap());
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Guardrail(guardrail_id(2)), workspace]);
}

async fn effect_is_readable_when_its_change_is(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    let before = newest_change(stores).await;
    let acts = (0..12).map(|number| async move {
        if number == 6 {
            disable(stores, 1, true).await;
        } else {
            let seen = changed_since(stores, before).await;
            let disabled = stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap().disabled;
            assert!(seen.is_empty() || disabled, "the change was seen before its effect");
        }
    });
    join_all(acts).await;
    assert_eq!(changed_since(stores, before).await, [ChangeSubject::Key(hash(1))]);
}

/// Keys and guardrails are written by two processes if the stores belong to two.
async fn numbers_have_no_gaps_when_writers_compete(stores: &Stores) {
    add_workspace(stores, 1).await;
    for number in 1..=8 {
        add_key(stores, &inference_key(number, 1)).await;
        add_guardrail(stores, &guardrail(10 + number, 1)).await;
    }
    let before = newest_change(stores).await;
    let writers = (1..=8).flat_map(|number| [(number, true), (number, false)]).map(|(number, is_key)| async move {
        if is_key {
            disable(stores, number, true).await;
            // The insert fails and writes nothing.
            assert!(stores.api_keys.insert(&inference_key(number, 1), &audit()).await.is_err());
        } else {
            let next = Guardrail { version: 2, ..guardrail(10 + number, 1) };
            assert!(update_guardrail(&*stores.guardrails, &next, [false; 2], &audit()).await.unwrap());
            let Changes::Continued(changes) = since(stores, before).await else { panic!("a number is missing") };
            assert!(changes.iter().any(|change| change.subject == ChangeSubject::Guardrail(next.id)));
        }
    });
    join_all(writers).await;
    let Changes::Continued(changes) = since(stores, before).await else { panic!("a number is missing") };
    let numbers: Vec<u64> = changes.iter().map(|change| change.position.number).collect();
    assert_eq!(numbers, (before.number + 1..=before.number + 16).collect::<Vec<_>>());
    let mut marks: Vec<i64> = changes.iter().map(|change| change.position.mark).collect();
    marks.sort_unstable();
    marks.dedup();
    assert_eq!(marks.len(), 16, "each change has a mark of its own");
}

async fn reader_starts_over_where_the_feed_does_not_continue(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    disable(stores, 1, true).await;
    let known = newest_change(stores).await;
    disable(stores, 1, false).await;
    let newest = newest_change(stores).await;
    assert_eq!(changed_since(stores, known).await, [ChangeSubject::Key(hash(1))]);
    let unknown = [
        ChangePosition { mark: known.mark.wrapping_add(1), ..known },
        ChangePosition { number: newest.number + 1, ..newest },
        ChangePosition { number: u64::MAX, ..newest },
    ];
    for position in unknown {
        assert_eq!(since(stores, position).await, Changes::StartOver(newest), "{position:?}");
    }
    assert_eq!(since(stores, newest).await, Changes::Continued(Vec::new()));
}

async fn changes_are_pruned_after_an_hour_but_not_the_newest(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    disable(stores, 1, true).await;
    let first = newest_change(stores).await;
    disable(stores, 1, false).await;
    let second = newest_change(stores).await;
    stores.clock.advance(Duration::from_hours(1));
    disable(stores, 1, true).await;
    assert_eq!(changed_since(stores, first).await.len(), 2, "a reader that was paused for an hour continues");
    stores.clock.advance(Duration::from_millis(1));
    disable(stores, 1, false).await;
    let newest = newest_change(stores).await;
    assert_eq!(since(stores, first).await, Changes::StartOver(newest));
    assert_eq!(changed_since(stores, second).await.len(), 2);
    stores.clock.advance(Duration::from_hours(100));
    assert_eq!(since(stores, newest).await, Changes::Continued(Vec::new()), "the newest is kept");
}

/// A change must not prune the one before it, which is the newest known change of every process.
async fn feed_continues_after_a_pause_of_any_length(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    for disabled in [true, false, true] {
        let before = newest_change(stores).await;
        stores.clock.advance(Duration::from_hours(1_000));
        disable(stores, 1, disabled).await;
        assert_eq!(changed_since(stores, before).await, [ChangeSubject::Key(hash(1))]);
    }
}

async fn only_changes_of_limits_raise_the_number_of_limits(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    let feed = async || stores.budget.signals().await.unwrap().feed;
    let before = feed().await;
    disable(stores, 1, true).await;
    assign_keys(&*stores.guardrails, guardrail_id(2), &[key_id(1).into()], &Actor::system()).await.unwrap();
    assert!(
        update_guardrail(&*stores.guardrails, &Guardrail { version: 2, ..guardrail(2, 1) }, [false; 2], &audit())
            .await
            .unwrap()
    );
    suspend(stores, 1, true).await;
    assert!(stores.models.apply(&CatalogueChange::default(), 0, &audit()).await.unwrap());
    assert_eq!(feed().await, before);
    let limit = SpendLimit { amount: Usd::from_pico(7), reset: Some(ResetInterval::Daily) };
    for step in 0..6 {
        let before = feed().await;
        match step {
            0 => {
                let key = stores.api_keys.find(&key_id(1).into()).await.unwrap().unwrap();
                let after = crate::api_key::ApiKey { limit: Some(limit), ..key.clone() };
                assert_eq!(
                    stores.api_keys.update(&key, &after, LastKeyRule::Waived, &audit()).await.unwrap(),
                    KeyUpdate::Updated
                );
            }
            1 => {
                let changed = Guardrail { version: 3, budget: Some(limit), ..guardrail(2, 1) };
                assert!(update_guardrail(&*stores.guardrails, &changed, [false; 2], &audit()).await.unwrap());
            }
            2 => {
                let daily = Some(Usd::from_pico(7));
                limit_workspace(stores, 1, WorkspaceBudgets { daily, ..WorkspaceBudgets::default() }).await;
            }
            3 => drop(add_credit(&*stores.workspaces, workspace_id(1), Usd::from_pico(7), &audit()).await.unwrap()),
            4 => assert!(clear_credit(&*stores.workspaces, workspace_id(1), &audit()).await.unwrap()),
            _ => assert!(stores.guardrails.delete(&placed(2, 3, false), &audit()).await.unwrap()),
        }
        assert!(feed().await > before, "step {step}");
        assert_eq!(feed().await, newest_change(stores).await.number, "step {step}");
    }
}
