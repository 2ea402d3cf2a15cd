//! Cases of [`crate::change_feed::ChangeFeed`].

use super::super::join_all;
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, audit, guardrail, guardrail_id, hash, inference_key, workspace_id,
};
use crate::model::CatalogueChange;

suite! {
    /// Every case of the port's contract.
    change_feed_cases as change_feed_contract over Stores {
        every_change_raises_its_counter_and_no_other_lowers_one,
        who_reads_the_new_counter_reads_the_change,
    }
}

async fn every_change_raises_its_counter_and_no_other_lowers_one(stores: &Stores) {
    let mut before = stores.changes.versions().await.unwrap();
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    add_guardrail(stores, &guardrail(2, 1)).await;
    for step in 0..7 {
        match step {
            0 => drop(stores.guardrails.assign_keys(guardrail_id(2), &[hash(1)], &audit()).await.unwrap()),
            1 => drop(stores.workspaces.set_suspended(workspace_id(1), true, &audit()).await.unwrap()),
            2 => drop(stores.api_keys.set_disabled(&hash(1), true, &audit()).await.unwrap()),
            3 => drop(stores.guardrails.delete(guardrail_id(2), &audit()).await.unwrap()),
            4 => drop(stores.api_keys.delete(&hash(1), &audit()).await.unwrap()),
            _ => assert!(stores.models.apply(&CatalogueChange::default(), before.catalogue, &audit()).await.unwrap()),
        }
        let now = stores.changes.versions().await.unwrap();
        if step < 5 {
            assert!(now.keys > before.keys && now.catalogue == before.catalogue, "step {step}: {before:?}, {now:?}");
        } else {
            assert!(now.catalogue > before.catalogue && now.keys == before.keys, "step {step}: {before:?}, {now:?}");
        }
        before = now;
    }
}

async fn who_reads_the_new_counter_reads_the_change(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_key(stores, &inference_key(1, 1)).await;
    let before = stores.changes.versions().await.unwrap().keys;
    let acts = (0..12).map(|number| async move {
        if number == 6 {
            assert!(stores.api_keys.set_disabled(&hash(1), true, &audit()).await.unwrap());
        } else {
            let seen = stores.changes.versions().await.unwrap().keys;
            let disabled = stores.api_keys.find(&hash(1)).await.unwrap().unwrap().disabled;
            assert!(seen >= before, "a counter fell");
            assert!(seen == before || disabled, "the counter came before its change");
        }
    });
    join_all(acts).await;
    assert!(stores.changes.versions().await.unwrap().keys > before);
}
