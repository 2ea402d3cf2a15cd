//! Cases of [`crate::observability::DestinationRepository`].

use super::super::join_all;
use super::Stores;
use super::outbox::{id as message_id, put};
use super::samples::{
    add_workspace, at, audit, changed_since, destination, destination_id, newest_change, workspace_id,
};
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::observability::{Destination, DestinationInsert, DestinationKind};
use crate::secret::SecretString;

suite! {
    /// Every case of the port's contract.
    destination_repository_cases as destination_repository_contract over Stores {
        find_returns_inserted_destination,
        list_is_oldest_first,
        insert_rejects_too_many_of_a_kind,
        concurrent_inserts_respect_maximum,
        update_replaces_unchanged_destination_only,
        concurrent_updates_succeed_once,
        changed_destination_is_resumed,
        delete_removes_pending_messages,
        changes_write_feed_and_audit_log,
    }
}

async fn add(stores: &Stores, destination: &Destination) -> DestinationInsert {
    stores.destinations.insert(destination, 5, &audit()).await.unwrap()
}

async fn find_returns_inserted_destination(stores: &Stores) {
    assert_eq!(add(stores, &destination(1, 1)).await, DestinationInsert::UnknownWorkspace);
    assert_eq!(stores.destinations.find(destination_id(1)).await.unwrap(), None);
    add_workspace(stores, 1).await;
    let bare = Destination {
        kind: DestinationKind::OtelCollector,
        headers: Vec::new(),
        signing_secret: None,
        enabled: false,
        privacy_mode: false,
        sampling: 10_000,
        api_key_ids: None,
        updated_at: Some(at(9)),
        ..destination(2, 1)
    };
    for one in [destination(1, 1), bare] {
        assert_eq!(add(stores, &one).await, DestinationInsert::Added);
        assert_eq!(stores.destinations.find(one.id).await.unwrap(), Some(one), "field by field");
    }
}

async fn list_is_oldest_first(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    for (number, workspace) in [(3, 1), (1, 1), (2, 2)] {
        add(stores, &destination(number, workspace)).await;
    }
    let listed = async |of| stores.destinations.list(of).await.unwrap();
    assert_eq!(listed(None).await, [destination(1, 1), destination(2, 2), destination(3, 1)]);
    assert_eq!(listed(Some(workspace_id(1))).await, [destination(1, 1), destination(3, 1)]);
    assert_eq!(listed(Some(workspace_id(9))).await, []);
    for of in [None, Some(workspace_id(1)), Some(workspace_id(9))] {
        let named: Vec<_> = listed(of).await.iter().map(Destination::named).collect();
        assert_eq!(stores.destinations.names(of).await.unwrap(), named);
    }
    let page =
        async |within: &ManagementScope, offset, limit| stores.destinations.page(within, offset, limit).await.unwrap();
    assert_eq!(page(&ManagementScope::UNRESTRICTED, 1, 1).await, (vec![destination(2, 2)], 3));
    let own = ManagementScope::of_one(workspace_id(1));
    assert_eq!(page(&own, 0, 9).await, (vec![destination(1, 1), destination(3, 1)], 2));
    assert_eq!(page(&own, 2, 9).await, (Vec::new(), 2));
}

async fn insert_rejects_too_many_of_a_kind(stores: &Stores) {
    for workspace in [1, 2] {
        add_workspace(stores, workspace).await;
    }
    for number in 1..=5 {
        assert_eq!(add(stores, &destination(number, 1)).await, DestinationInsert::Added);
    }
    assert_eq!(add(stores, &destination(6, 1)).await, DestinationInsert::TooMany);
    assert_eq!(stores.destinations.find(destination_id(6)).await.unwrap(), None);
    let other_kind = Destination { kind: DestinationKind::OtelCollector, ..destination(7, 1) };
    assert_eq!(add(stores, &other_kind).await, DestinationInsert::Added, "another kind is counted by itself");
    assert_eq!(add(stores, &destination(8, 2)).await, DestinationInsert::Added, "and so is another workspace");
}

async fn concurrent_inserts_respect_maximum(stores: &Stores) {
    add_workspace(stores, 1).await;
    let rivals = (1..=9).map(|number| async move { add(stores, &destination(number, 1)).await });
    let added = join_all(rivals).await;
    assert_eq!(added.iter().filter(|one| **one == DestinationInsert::Added).count(), 5);
    assert_eq!(stores.destinations.list(None).await.unwrap().len(), 5);
}

async fn update_replaces_unchanged_destination_only(stores: &Stores) {
    add_workspace(stores, 1).await;
    add(stores, &destination(1, 1)).await;
    let update = async |changed: &Destination, seen| stores.destinations.update(changed, seen, &audit()).await.unwrap();
    let changed = Destination {
        name: "else".to_owned(),
        url: "http://example.org".to_owned(),
        headers: Vec::new(),
        signing_secret: Some(SecretString::new("another secret!!")),
        enabled: false,
        privacy_mode: false,
        sampling: 1,
        api_key_ids: None,
        updated_at: Some(at(100)),
        ..destination(1, 1)
    };
    assert!(!update(&changed, Some(at(3))).await, "it was never changed at that moment");
    assert!(update(&changed, None).await);
    assert_eq!(stores.destinations.find(changed.id).await.unwrap(), Some(changed.clone()));
    assert!(!update(&destination(1, 1), None).await, "it was changed since");
    let again = Destination { enabled: true, updated_at: Some(at(101)), ..changed };
    assert!(update(&again, Some(at(100))).await);
    assert_eq!(stores.destinations.find(again.id).await.unwrap(), Some(again));
    assert!(!update(&destination(2, 1), None).await, "there is no such destination");
}

async fn concurrent_updates_succeed_once(stores: &Stores) {
    add_workspace(stores, 1).await;
    add(stores, &destination(1, 1)).await;
    let rivals = (1..=8).map(|number| async move {
        let changed =
            Destination { name: format!("rival {number}"), updated_at: Some(at(50 + number)), ..destination(1, 1) };
        stores.destinations.update(&changed, None, &audit()).await.unwrap()
    });
    assert_eq!(join_all(rivals).await.into_iter().filter(|won| *won).count(), 1);
}

async fn changed_destination_is_resumed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add(stores, &destination(1, 1)).await;
    put(stores, &[(1, 1)]).await;
    let (now, later) = (at(100_000_000), at(100_000_060));
    let due = async || stores.outbox.due(now, &[]).await.unwrap();
    stores.outbox.failed(&[message_id(1)], Some(later), "busy").await.unwrap();
    stores.outbox.pause(&destination(1, 1), later).await.unwrap();
    let changed = Destination { updated_at: Some(at(9)), ..destination(1, 1) };
    assert!(!stores.destinations.update(&changed, Some(at(3)), &audit()).await.unwrap());
    assert_eq!(due().await, [], "it was not changed");
    assert!(stores.destinations.update(&changed, None, &audit()).await.unwrap());
    assert_eq!(due().await, [destination_id(1)]);
    stores.outbox.pause(&changed, later).await.unwrap();
    assert!(stores.destinations.delete(destination_id(1), Some(at(9)), &audit()).await.unwrap());
    put(stores, &[(2, 1)]).await;
    assert_eq!(due().await, [destination_id(1)], "a deleted one leaves no pause");
}

async fn delete_removes_pending_messages(stores: &Stores) {
    add_workspace(stores, 1).await;
    for number in [1, 2] {
        add(stores, &destination(number, 1)).await;
    }
    put(stores, &[(1, 1), (2, 1), (3, 2)]).await;
    assert!(!stores.destinations.delete(destination_id(1), Some(at(3)), &audit()).await.unwrap(), "never changed then");
    assert_eq!(stores.outbox.status().await.unwrap().pending, 3);
    assert!(stores.destinations.delete(destination_id(1), None, &audit()).await.unwrap());
    assert_eq!(stores.outbox.status().await.unwrap().pending, 1);
    assert_eq!(stores.destinations.find(destination_id(1)).await.unwrap(), None);
    assert!(!stores.destinations.delete(destination_id(1), None, &audit()).await.unwrap(), "a second time is nothing");
}

async fn changes_write_feed_and_audit_log(stores: &Stores) {
    add_workspace(stores, 1).await;
    let mut entries = stores.audit.newest(100).await.unwrap().len();
    for step in 0..3 {
        let before = newest_change(stores).await;
        match step {
            0 => assert_eq!(add(stores, &destination(1, 1)).await, DestinationInsert::Added),
            1 => {
                let changed = Destination { updated_at: Some(at(9)), ..destination(1, 1) };
                assert!(stores.destinations.update(&changed, None, &audit()).await.unwrap());
            }
            _ => assert!(stores.destinations.delete(destination_id(1), Some(at(9)), &audit()).await.unwrap()),
        }
        assert_eq!(changed_since(stores, before).await, [ChangeSubject::Destinations], "step {step}");
        entries += 1;
        assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries, "step {step}");
    }
}
