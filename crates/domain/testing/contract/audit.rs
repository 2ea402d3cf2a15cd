//! Cases of [`crate::audit::AuditLog`], and of the entries of changes.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use super::super::join_all;
use super::super::{assign_keys, delete_key, set_disabled};
use super::Stores;
use super::samples::{
    audit, catalogue_version, guardrail, guardrail_id, hash, inference_key, key_id, management_key, placed, suspend,
    update_guardrail, workspace, workspace_id,
};
use crate::api_key::{ApiKey, KeyInsertion, KeyUpdate, LastKeyRule};
use crate::audit::{Actor, AuditDraft, AuditEntry, AuditHash, AuditOutcome, VerifyAuditLog};
use crate::error::StoreError;
use crate::guardrail::Guardrail;
use crate::json::Json;
use crate::model::CatalogueChange;
use crate::money::Usd;
use crate::system::Clock;
use crate::testing::{add_credit, clear_credit};
use crate::workspace::{Workspace, WorkspaceError, WorkspaceInsertion, WorkspaceUpdate};

suite! {
    /// Every case of the port's contract, and of the entry of every change.
    audit_log_cases as audit_log_contract over Stores {
        read_returns_appended_entries,
        concurrent_appends_form_one_chain,
        prune_removes_oldest_and_keeps_newest,
        chain_continues_after_prune,
        key_changes_append_one_entry_each,
        workspace_changes_append_one_entry_each,
        guardrail_changes_append_one_entry_each,
        catalogue_changes_append_one_entry_each,
        entry_is_visible_with_its_change,
    }
}

fn draft(number: u64) -> AuditDraft {
    AuditDraft {
        actor: Actor { name: format!("user:ö{number}"), source: (number % 2 == 1).then(|| "2001:db8::1".to_owned()) },
        action: "key.create",
        subject: format!("key '{number}'"),
        outcome: if number.is_multiple_of(3) { AuditOutcome::Denied } else { AuditOutcome::Done },
        details: Json::parse("{\"after\" : {\"a\":1.0, \"a\":1e400}}").unwrap(),
        repetition: None,
    }
}

async fn verified(stores: &Stores) -> u64 {
    let found = VerifyAuditLog::new(Arc::clone(&stores.audit)).execute(None).await.unwrap();
    assert_eq!((found.violation, found.row_violations), (None, vec![]));
    found.entries
}

async fn read_returns_appended_entries(stores: &Stores) {
    assert_eq!(stores.audit.read(0, 10).await.unwrap(), []);
    assert_eq!(stores.audit.newest(10).await.unwrap(), []);
    let mut written = Vec::new();
    for number in 1..=5 {
        stores.clock.advance(Duration::from_millis(7));
        written.push(stores.audit.append(&draft(number)).await.unwrap());
    }
    let places: Vec<u64> = written.iter().map(|entry| entry.seq).collect();
    assert_eq!(places, [1, 2, 3, 4, 5]);
    assert_eq!((written[0].previous_hash, written[1].previous_hash), (AuditHash::NONE, written[0].hash));
    assert_eq!(written[4].at.timestamp_millis(), stores.clock.now().timestamp_millis());
    let read = stores.audit.read(0, 10).await.unwrap();
    assert_eq!(read, written, "field by field");
    let text = |entry: &AuditEntry| entry.details.text().to_owned();
    assert_eq!(text(&read[0]), text(&written[0]), "byte for byte");
    assert_eq!(stores.audit.read(2, 2).await.unwrap(), written[1..3]);
    assert_eq!(stores.audit.read(6, 2).await.unwrap(), []);
    assert_eq!(stores.audit.newest(2).await.unwrap(), [written[4].clone(), written[3].clone()]);
    assert_eq!(stores.audit.read_before(4, 2).await.unwrap(), [written[2].clone(), written[1].clone()]);
    assert_eq!(stores.audit.read_before(2, 9).await.unwrap(), written[..1]);
    assert_eq!(stores.audit.read_before(1, 9).await.unwrap(), []);
    assert_eq!(verified(stores).await, 5);
}

async fn concurrent_appends_form_one_chain(stores: &Stores) {
    stores.workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
    join_all((0..100).map(|number| async move {
        match number % 3 {
            0 => {
                let draft = draft(number);
                let added = add_credit(&*stores.workspaces, workspace_id(1), Usd::from_pico(1), &draft).await;
                assert!(added.unwrap().is_some());
            }
            1 => {
                assert!(stores.api_keys.insert(&inference_key(number, 1), &draft(number)).await.unwrap().is_inserted());
            }
            _ => drop(stores.audit.append(&draft(number)).await.unwrap()),
        }
    }))
    .await;
    assert_eq!(verified(stores).await, 101, "without a gap, and each after the one before");
}

/// Appends ten entries, an hour apart.
async fn ten_hours(stores: &Stores) -> Vec<AuditEntry> {
    let mut written = Vec::new();
    for number in 1..=10 {
        written.push(stores.audit.append(&draft(number)).await.unwrap());
        stores.clock.advance(Duration::from_hours(1));
    }
    written
}

async fn prune_removes_oldest_and_keeps_newest(stores: &Stores) {
    assert_eq!(stores.audit.prune(stores.clock.now(), 10).await.unwrap(), 0, "of nothing");
    let written = ten_hours(stores).await;
    assert_eq!(stores.audit.prune(written[0].at, 10).await.unwrap(), 0, "nothing is older than the first");
    assert_eq!(stores.audit.prune(written[5].at, 3).await.unwrap(), 3, "no more than asked for");
    assert_eq!(stores.audit.prune(written[5].at, 3).await.unwrap(), 2);
    assert_eq!(stores.audit.read(0, 20).await.unwrap(), written[5..]);
    assert_eq!(verified(stores).await, 5);
    let future = stores.clock.now() + TimeDelta::days(1);
    assert_eq!(stores.audit.prune(future, 100).await.unwrap(), 4);
    assert_eq!(stores.audit.read(0, 20).await.unwrap(), written[9..], "the newest stays");
    assert_eq!(stores.audit.prune(future, 100).await.unwrap(), 0);
}

async fn chain_continues_after_prune(stores: &Stores) {
    let written = ten_hours(stores).await;
    stores.audit.prune(stores.clock.now(), 100).await.unwrap();
    let next = stores.audit.append(&draft(11)).await.unwrap();
    assert_eq!((next.seq, next.previous_hash), (11, written[9].hash), "no place is given twice");
    // The clock may have been set back.
    stores.clock.set(written[0].at - TimeDelta::days(1));
    stores.audit.append(&draft(12)).await.unwrap();
    assert_eq!(stores.audit.prune(written[0].at, 100).await.unwrap(), 0, "what stands before it is newer");
    assert_eq!(verified(stores).await, 3);
}

/// Runs a change, and returns its result with the number of its entries.
async fn run_and_count_entries<T>(stores: &Stores, change: impl Future<Output = T>) -> (T, usize) {
    let before = stores.audit.newest(1).await.unwrap().first().map_or(0, |entry| entry.seq);
    let ended = change.await;
    let new = stores.audit.read(before + 1, 10).await.unwrap();
    // The repository creates the entries of assignments itself.
    let words = |entry: &AuditEntry| matches!(entry.action.as_str(), "test.change" | "guardrail.assign_keys");
    assert!(new.iter().all(words), "{new:?}");
    verified(stores).await;
    (ended, new.len())
}

/// Asserts that the change returns `$ended` and appends `$count` entries.
macro_rules! assert_entries {
    ($stores:expr, $count:expr, $ended:pat, $change:expr) => {{
        let (ended, entries) = run_and_count_entries($stores, $change).await;
        assert!(matches!(ended, $ended), "{}: {ended:?}", stringify!($change));
        assert_eq!(entries, $count, "{}", stringify!($change));
    }};
}

async fn key_changes_append_one_entry_each(stores: &Stores) {
    let (keys, draft) = (&stores.api_keys, audit());
    assert_entries!(stores, 0, Ok(KeyInsertion::UnknownWorkspace), keys.insert(&inference_key(1, 1), &draft));
    stores.workspaces.insert(&workspace(1), false, &draft).await.unwrap();
    assert_entries!(stores, 1, Ok(KeyInsertion::Inserted), keys.insert(&inference_key(1, 1), &draft));
    assert_entries!(stores, 0, Err(StoreError::Corrupt(_)), keys.insert(&inference_key(1, 1), &draft));
    assert_entries!(stores, 1, Ok(true), set_disabled(&**keys, key_id(1), true, LastKeyRule::Waived, &draft));
    assert_entries!(stores, 0, Ok(true), set_disabled(&**keys, key_id(1), true, LastKeyRule::Waived, &draft));
    assert_entries!(stores, 1, Ok(true), set_disabled(&**keys, key_id(1), false, LastKeyRule::Waived, &draft));
    assert_entries!(stores, 0, Ok(false), set_disabled(&**keys, key_id(2), true, LastKeyRule::Waived, &draft));
    let before = inference_key(1, 1);
    let after = ApiKey { limit: None, ..before.clone() };
    assert_entries!(stores, 1, Ok(KeyUpdate::Updated), keys.update(&before, &after, LastKeyRule::Waived, &draft));
    assert_entries!(stores, 0, Ok(KeyUpdate::Conflict), keys.update(&before, &after, LastKeyRule::Waived, &draft));
    assert_entries!(stores, 0, Ok(KeyUpdate::Updated), keys.update(&after, &after, LastKeyRule::Waived, &draft));
    let rotated = ApiKey { hash: hash(9), ..after.clone() };
    assert_entries!(stores, 1, Ok(true), keys.rotate(&after, &rotated, &draft));
    assert_entries!(stores, 0, Ok(false), keys.rotate(&after, &rotated, &draft));
    assert_entries!(stores, 1, Ok(true), delete_key(&**keys, key_id(1), LastKeyRule::Waived, &draft));
    assert_entries!(stores, 0, Ok(false), delete_key(&**keys, key_id(1), LastKeyRule::Waived, &draft));
}

async fn workspace_changes_append_one_entry_each(stores: &Stores) {
    let (workspaces, draft, one) = (&stores.workspaces, audit(), workspace_id(1));
    assert_entries!(stores, 1, Ok(true), workspaces.bootstrap(&workspace(9), &management_key(9), &draft));
    assert_entries!(stores, 0, Ok(false), workspaces.bootstrap(&workspace(8), &management_key(8), &draft));
    assert_entries!(stores, 0, Ok(Workspace { .. }), workspaces.default_or_insert(&workspace(8), &draft));
    assert_entries!(stores, 1, Ok(WorkspaceInsertion::Inserted), workspaces.insert(&workspace(1), false, &draft));
    let same_slug = Workspace { id: workspace_id(6), ..workspace(1) };
    assert_entries!(stores, 0, Ok(WorkspaceInsertion::SlugTaken), workspaces.insert(&same_slug, false, &draft));
    let (first, second) = (workspace(1), Workspace { suspended: true, ..workspace(1) });
    assert_entries!(stores, 1, Ok(WorkspaceUpdate::Updated), workspaces.update(&first, &second, &draft));
    assert_entries!(stores, 0, Ok(WorkspaceUpdate::Differs), workspaces.update(&first, &second, &draft));
    assert_entries!(stores, 0, Ok(true), clear_credit(&**workspaces, one, &draft));
    assert_entries!(stores, 1, Ok(Some(_)), add_credit(&**workspaces, one, Usd::from_pico(3), &draft));
    assert_entries!(stores, 0, Ok(Some(_)), add_credit(&**workspaces, one, Usd::ZERO, &draft));
    assert_entries!(
        stores,
        0,
        Err(WorkspaceError::CreditOutOfRange),
        add_credit(&**workspaces, one, Usd::from_pico(i64::MAX), &draft)
    );
    assert_entries!(stores, 1, Ok(true), clear_credit(&**workspaces, one, &draft));
    assert_entries!(stores, 1, Ok(Some(Usd::ZERO)), add_credit(&**workspaces, one, Usd::ZERO, &draft));
    assert_entries!(stores, 0, Ok(None), add_credit(&**workspaces, workspace_id(7), Usd::ZERO, &draft));
}

async fn guardrail_changes_append_one_entry_each(stores: &Stores) {
    let (guardrails, draft, id) = (&stores.guardrails, audit(), guardrail_id(2));
    assert_entries!(stores, 0, Ok(false), guardrails.insert(&guardrail(2, 1), false, &draft));
    stores.workspaces.insert(&workspace(1), false, &draft).await.unwrap();
    assert!(stores.api_keys.insert(&inference_key(1, 1), &draft).await.unwrap().is_inserted());
    assert_entries!(stores, 1, Ok(true), guardrails.insert(&guardrail(2, 1), false, &draft));
    let second = Guardrail { version: 2, updated_at: Some(stores.clock.now()), ..guardrail(2, 1) };
    assert_entries!(stores, 1, Ok(true), update_guardrail(&**guardrails, &second, [false; 2], &draft));
    assert_entries!(stores, 0, Ok(false), update_guardrail(&**guardrails, &second, [false; 2], &draft));
    assert_entries!(stores, 1, Ok(Some(1)), assign_keys(&**guardrails, id, &[key_id(1).into()], &draft.actor));
    assert_entries!(stores, 0, Ok(Some(1)), assign_keys(&**guardrails, id, &[key_id(1).into()], &draft.actor));
    assert_entries!(
        stores,
        0,
        Ok(None),
        assign_keys(&**guardrails, guardrail_id(3), &[key_id(1).into()], &draft.actor)
    );
    assert_entries!(stores, 1, Ok(true), guardrails.delete(&placed(2, 2, false), &draft));
    assert_entries!(stores, 0, Ok(false), guardrails.delete(&placed(2, 1, false), &draft));
}

async fn catalogue_changes_append_one_entry_each(stores: &Stores) {
    let (version, draft) = (catalogue_version(stores).await, audit());
    assert_entries!(stores, 1, Ok(true), stores.models.apply(&CatalogueChange::default(), version, &draft));
    assert_entries!(stores, 0, Ok(false), stores.models.apply(&CatalogueChange::default(), version, &draft));
}

/// A reader of the change sees its entry.
async fn entry_is_visible_with_its_change(stores: &Stores) {
    stores.workspaces.insert(&workspace(1), false, &audit()).await.unwrap();
    let act = async |number: u64| {
        if number == 6 {
            suspend(stores, 1, true).await;
        } else {
            let changed = stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap().suspended;
            let entries = stores.audit.read(0, 10).await.unwrap().len();
            assert!(!changed || entries == 2, "a change without its entry");
        }
    };
    join_all((0..12).map(act)).await;
}
