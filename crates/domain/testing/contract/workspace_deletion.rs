//! Cases of [`crate::workspace::WorkspaceRepository`] on deletion.

use super::super::delete_key;
use super::Stores;
use super::samples::{
    add_guardrail, add_key, add_workspace, at, audit, changed_since, destination, document_id, guardrail,
    inference_key, key_id, newest_change, workspace, workspace_id,
};
use crate::api_key::LastKeyRule;
use crate::authority::ManagementScope;
use crate::change_feed::ChangeSubject;
use crate::file::{DocumentQuota, PendingDocument, Reservation};
use crate::guardrail::PlacedGuardrail;
use crate::naming::ResourceName;
use crate::observability::{Destination, DestinationInsert};
use crate::testing::{add_credit, clear_credit};
use crate::workspace::{Workspace, WorkspaceContents, WorkspaceDeletion, WorkspaceUpdate};

fn pending() -> PendingDocument {
    PendingDocument {
        id: document_id(1),
        workspace_id: workspace_id(2),
        filename: "a".to_owned(),
        size_bytes: 1,
        charged_bytes: 1,
        process: None,
        created_at: at(1),
    }
}

const QUOTA: DocumentQuota = DocumentQuota { bytes: u64::MAX >> 1, documents: 9 };

pub(super) async fn delete_accepts_empty_workspaces_only(stores: &Stores) {
    let repository = &stores.workspaces;
    repository.default_or_insert(&workspace(1), &audit()).await.unwrap();
    add_workspace(stores, 2).await;
    let delete = async |number| repository.delete(&workspace(number), false, 0, &audit()).await.unwrap();
    assert_eq!(delete(1).await, WorkspaceDeletion::IsDefault);
    assert_eq!(delete(3).await, WorkspaceDeletion::Unknown);
    add_key(stores, &inference_key(1, 2)).await;
    add_guardrail(stores, &guardrail(1, 2)).await;
    let own = Destination { api_key_ids: None, ..destination(1, 2) };
    let added = stores.destinations.insert(&own, Destination::MAX_PER_KIND, &audit()).await.unwrap();
    assert_eq!(added, DestinationInsert::Added);
    assert_eq!(stores.documents.reserve(&pending(), QUOTA, None).await.unwrap(), Reservation::Reserved);
    let all = WorkspaceContents { keys: 1, documents: 1, guardrails: 1, destinations: 1, ..Default::default() };
    let newest = newest_change(stores).await;
    assert_eq!(delete(2).await, WorkspaceDeletion::NotEmpty(all));
    assert!(repository.find(workspace_id(2)).await.unwrap().is_some(), "nothing was changed");
    assert_eq!(changed_since(stores, newest).await, []);
    assert!(delete_key(&*stores.api_keys, key_id(1), LastKeyRule::Waived, &audit()).await.unwrap());
    assert!(
        stores
            .guardrails
            .delete(&PlacedGuardrail { guardrail: guardrail(1, 2), workspace_default: false }, &audit())
            .await
            .unwrap()
    );
    assert!(stores.destinations.delete(own.id, None, &audit()).await.unwrap());
    let documents = WorkspaceContents { documents: 1, ..WorkspaceContents::default() };
    assert_eq!(delete(2).await, WorkspaceDeletion::NotEmpty(documents));
    assert!(stores.documents.abandon(workspace_id(2), &document_id(1)).await.unwrap());
    let newest = newest_change(stores).await;
    assert_eq!(delete(2).await, WorkspaceDeletion::Deleted, "a deleted key does not count");
    assert_eq!(changed_since(stores, newest).await, [ChangeSubject::Workspace(workspace_id(2))]);
}

pub(super) async fn deleted_workspace_does_not_exist(stores: &Stores) {
    let repository = &stores.workspaces;
    add_workspace(stores, 2).await;
    let (id, found) = (workspace_id(2), workspace(2));
    let other = Workspace { suspended: true, ..found.clone() };
    assert_eq!(repository.delete(&other, false, 0, &audit()).await.unwrap(), WorkspaceDeletion::Differs);
    assert_eq!(repository.delete(&found, false, 0, &audit()).await.unwrap(), WorkspaceDeletion::Deleted);
    assert_eq!(repository.delete(&found, false, 0, &audit()).await.unwrap(), WorkspaceDeletion::Unknown);
    assert_eq!(repository.find(id).await.unwrap(), None);
    let all = &ManagementScope::UNRESTRICTED;
    for name in [(&id).into(), ResourceName::new(found.slug.as_str()), ResourceName::new(found.name.as_str())] {
        assert_eq!(repository.find_named(&name, all).await.unwrap(), []);
    }
    assert_eq!(repository.page(all, 0, 9).await.unwrap(), (Vec::new(), 0));
    assert_eq!(repository.credit(id).await.unwrap(), None);
    assert_eq!(repository.list().await.unwrap(), []);
    assert_eq!(repository.free_slug(&found.slug).await.unwrap(), found.slug);
    assert_eq!(stores.limits.workspace_limit_statuses(id).await.unwrap(), []);
    let suspended = Workspace { suspended: true, ..found.clone() };
    assert_eq!(repository.update(&found, &suspended, &audit()).await.unwrap(), WorkspaceUpdate::Differs);
    assert!(!clear_credit(&**repository, id, &audit()).await.unwrap());
    assert_eq!(add_credit(&**repository, id, crate::money::Usd::from_pico(1), &audit()).await.unwrap(), None);
    assert!(!stores.api_keys.insert(&inference_key(1, 2), &audit()).await.unwrap().is_inserted());
    let added = stores.guardrails.insert(&guardrail(1, 2), false, &audit()).await.unwrap();
    assert!(!added, "no guardrail");
    let added = stores.destinations.insert(&destination(1, 2), Destination::MAX_PER_KIND, &audit()).await.unwrap();
    assert_eq!(added, DestinationInsert::UnknownWorkspace);
    assert_eq!(stores.documents.reserve(&pending(), QUOTA, None).await.unwrap(), Reservation::UnknownWorkspace);
}
