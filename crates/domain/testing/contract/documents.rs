//! Cases of [`crate::file::DocumentRepository`].

use chrono::TimeDelta;

use super::super::join_all;
use super::Stores;
use super::samples::{add_key, add_workspace, at, audit, document_id, inference_key, key_id, workspace_id};
use crate::audit::{Actor, AuditDraft};
use crate::file::{ClaimState, Document, DocumentQuota, IdempotencyClaim, PendingDocument, Reservation};
use crate::json::Json;
use crate::workspace::WorkspaceDeletion;

suite! {
    /// Every case of the port's contract.
    document_repository_cases as document_repository_contract over Stores {
        pending_document_is_invisible,
        ready_document_is_visible_to_its_workspace_only,
        mark_ready_accepts_pending_documents_only,
        abandon_releases_bytes,
        quota_is_exact_to_the_byte,
        reserve_is_rejected_when_the_sum_would_overflow,
        concurrent_reserves_never_exceed_the_quota,
        reserve_rejects_too_many_documents,
        charged_bytes_count_against_the_quota,
        workspace_shows_used_bytes,
        claim_passes_through_its_states,
        claim_is_bound_to_key_operation_and_subject,
        claim_ends_with_its_pending_document,
        claim_expires,
        concurrent_claims_reserve_once,
        concurrent_ready_and_abandon_have_one_effect,
        abandon_stale_removes_old_pending_documents_only,
        list_pending_returns_pending_documents_with_their_processes,
        unknown_returns_missing_ids,
        own_workspaces_are_those_that_exist_or_existed,
        list_returns_ready_documents_page_by_page,
        scan_returns_documents_of_all_workspaces_page_by_page,
        delete_returns_bytes_and_is_audited,
    }
}

async fn insert_fixtures(stores: &Stores) {
    for number in [1, 2] {
        add_workspace(stores, number).await;
        add_key(stores, &inference_key(number, number)).await;
    }
}

fn pending(number: u64, workspace: u64, size_bytes: u64) -> PendingDocument {
    PendingDocument {
        id: document_id(number),
        workspace_id: workspace_id(workspace),
        filename: format!("out/späce {number}'.csv"),
        size_bytes,
        charged_bytes: size_bytes,
        process: None,
        created_at: at(i64::try_from(number).unwrap()),
    }
}

/// Returns a quota of bytes only.
fn byte_quota(bytes: u64) -> DocumentQuota {
    DocumentQuota { bytes, documents: u64::MAX }
}

fn ready(pending: &PendingDocument) -> Document {
    Document {
        id: pending.id.clone(),
        workspace_id: pending.workspace_id,
        filename: pending.filename.clone(),
        media_type: "text/csv".to_owned(),
        size_bytes: pending.size_bytes,
        sha256: "ab".repeat(32),
        created_at: pending.created_at,
    }
}

fn claim(key: &str, subject: &str) -> IdempotencyClaim {
    IdempotencyClaim {
        api_key: key_id(1),
        operation: "promote",
        key: key.parse().unwrap(),
        subject: subject.to_owned(),
        not_before: at(-1_000),
    }
}

async fn reserve(stores: &Stores, document: &PendingDocument, quota: u64) -> Reservation {
    stores.documents.reserve(document, byte_quota(quota), None).await.unwrap()
}

async fn reserve_with(stores: &Stores, document: &PendingDocument, claim: &IdempotencyClaim) -> Reservation {
    stores.documents.reserve(document, byte_quota(1_000), Some(claim)).await.unwrap()
}

async fn make_ready(stores: &Stores, pending: &PendingDocument) -> Option<Document> {
    let document = ready(pending);
    stores
        .documents
        .mark_ready(pending.workspace_id, &pending.id, &document.sha256, &document.media_type)
        .await
        .unwrap()
}

async fn used(stores: &Stores, workspace: u64) -> u64 {
    stores.documents.used_bytes(workspace_id(workspace)).await.unwrap()
}

async fn pending_document_is_invisible(stores: &Stores) {
    insert_fixtures(stores).await;
    let document = pending(1, 1, 10);
    assert_eq!(reserve(stores, &document, 1_000).await, Reservation::Reserved);
    assert_eq!(stores.documents.find(workspace_id(1), &document.id).await.unwrap(), None);
    assert_eq!(used(stores, 1).await, 10, "but it holds quota");
}

async fn ready_document_is_visible_to_its_workspace_only(stores: &Stores) {
    insert_fixtures(stores).await;
    let document = pending(1, 1, 10);
    reserve(stores, &document, 1_000).await;
    assert_eq!(make_ready(stores, &document).await, Some(ready(&document)), "field by field");
    assert_eq!(stores.documents.find(workspace_id(1), &document.id).await.unwrap(), Some(ready(&document)));
    assert_eq!(stores.documents.find(workspace_id(2), &document.id).await.unwrap(), None, "it is another's");
    assert_eq!(used(stores, 1).await, 10);
    assert_eq!(used(stores, 2).await, 0);
    let empty = pending(2, 1, 0);
    assert_eq!(reserve(stores, &empty, 10).await, Reservation::Reserved, "nothing fits into a full quota");
    assert_eq!(make_ready(stores, &empty).await, Some(ready(&empty)));
}

async fn mark_ready_accepts_pending_documents_only(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(make_ready(stores, &pending(1, 1, 10)).await, None, "there is no such document");
    let document = pending(2, 1, 10);
    reserve(stores, &document, 1_000).await;
    let of_another = PendingDocument { workspace_id: workspace_id(2), ..document.clone() };
    assert_eq!(make_ready(stores, &of_another).await, None, "it is another's");
    assert!(make_ready(stores, &document).await.is_some());
    assert_eq!(make_ready(stores, &document).await, None, "it is ready already");
    let abandoned = pending(3, 1, 10);
    reserve(stores, &abandoned, 1_000).await;
    assert!(stores.documents.abandon(workspace_id(1), &abandoned.id).await.unwrap());
    assert_eq!(make_ready(stores, &abandoned).await, None, "it was swept");
}

async fn abandon_releases_bytes(stores: &Stores) {
    insert_fixtures(stores).await;
    let document = pending(1, 1, 10);
    reserve(stores, &document, 1_000).await;
    let abandon = async |workspace| stores.documents.abandon(workspace_id(workspace), &document.id).await.unwrap();
    assert!(!abandon(2).await, "it is another's");
    assert_eq!(used(stores, 1).await, 10);
    assert!(abandon(1).await);
    assert_eq!(used(stores, 1).await, 0);
    assert!(!abandon(1).await, "once");
    let kept = pending(2, 1, 7);
    reserve(stores, &kept, 1_000).await;
    make_ready(stores, &kept).await;
    assert!(!stores.documents.abandon(workspace_id(1), &kept.id).await.unwrap(), "a ready document stays");
    assert_eq!(used(stores, 1).await, 7);
    assert!(stores.documents.find(workspace_id(1), &kept.id).await.unwrap().is_some());
}

async fn quota_is_exact_to_the_byte(stores: &Stores) {
    insert_fixtures(stores).await;
    let first = pending(1, 1, 60);
    reserve(stores, &first, 100).await;
    make_ready(stores, &first).await;
    assert_eq!(reserve(stores, &pending(2, 1, 41), 100).await, Reservation::QuotaExceeded { used_bytes: 60 });
    assert_eq!(used(stores, 1).await, 60, "nothing was changed");
    assert_eq!(stores.documents.find_unknown(&[document_id(2)]).await.unwrap(), [document_id(2)]);
    let huge = reserve(stores, &pending(3, 1, i64::MAX.unsigned_abs()), 100).await;
    assert_eq!(huge, Reservation::QuotaExceeded { used_bytes: 60 });
    assert_eq!(reserve(stores, &pending(4, 1, 40), 100).await, Reservation::Reserved, "the last byte is there");
    assert_eq!(reserve(stores, &pending(5, 1, 1), 100).await, Reservation::QuotaExceeded { used_bytes: 100 });
    assert_eq!(
        reserve(stores, &pending(6, 2, 100), 100).await,
        Reservation::Reserved,
        "another has a quota of its own"
    );
}

/// A counter that wrapped would make room for everything.
async fn reserve_is_rejected_when_the_sum_would_overflow(stores: &Stores) {
    insert_fixtures(stores).await;
    let largest = i64::MAX.unsigned_abs();
    assert_eq!(reserve(stores, &pending(1, 1, largest), u64::MAX).await, Reservation::Reserved);
    for (number, size) in [(2, 1), (3, largest)] {
        let result = reserve(stores, &pending(number, 1, size), u64::MAX).await;
        assert_eq!(result, Reservation::QuotaExceeded { used_bytes: largest }, "{size} more bytes");
    }
    assert_eq!(used(stores, 1).await, largest, "nothing was changed");
    assert!(stores.documents.abandon(workspace_id(1), &document_id(1)).await.unwrap());
    assert_eq!(used(stores, 1).await, 0);
}

async fn concurrent_reserves_never_exceed_the_quota(stores: &Stores) {
    insert_fixtures(stores).await;
    let rivals = (1..=24).map(|number| async move { reserve(stores, &pending(number, 1, 100), 1_050).await });
    let results = join_all(rivals).await;
    let reserved = results.iter().filter(|result| **result == Reservation::Reserved).count();
    assert_eq!(reserved, 10, "{results:?}");
    assert_eq!(used(stores, 1).await, 1_000);
}

async fn reserve_rejects_too_many_documents(stores: &Stores) {
    insert_fixtures(stores).await;
    let reserve = async |number, workspace, documents| {
        let quota = DocumentQuota { bytes: u64::MAX, documents };
        stores.documents.reserve(&pending(number, workspace, 0), quota, None).await.unwrap()
    };
    assert_eq!(reserve(1, 1, 2).await, Reservation::Reserved);
    make_ready(stores, &pending(1, 1, 0)).await;
    assert_eq!(reserve(2, 1, 2).await, Reservation::Reserved, "the last one");
    assert_eq!(reserve(3, 1, 2).await, Reservation::TooManyDocuments { documents: 2 });
    assert_eq!(
        stores.documents.find_unknown(&[document_id(3)]).await.unwrap(),
        [document_id(3)],
        "nothing was changed"
    );
    assert_eq!(reserve(4, 2, 2).await, Reservation::Reserved, "another workspace has a bound of its own");
    assert_eq!(reserve(5, 1, 0).await, Reservation::TooManyDocuments { documents: 2 });
    stores.documents.abandon(workspace_id(1), &document_id(2)).await.unwrap();
    assert_eq!(reserve(6, 1, 2).await, Reservation::Reserved, "an abandoned document does not count");
    stores.documents.abandon_stale(at(100)).await.unwrap();
    assert_eq!(reserve(7, 1, 2).await, Reservation::Reserved, "neither does a stale one");
    assert_eq!(reserve(8, 1, 2).await, Reservation::TooManyDocuments { documents: 2 });
    let rivals = (20..32).map(|number| reserve(number, 2, 5));
    let results = join_all(rivals).await;
    let reserved = results.iter().filter(|result| **result == Reservation::Reserved).count();
    assert_eq!(reserved, 5, "{results:?}");
}

async fn charged_bytes_count_against_the_quota(stores: &Stores) {
    insert_fixtures(stores).await;
    let empty = |number| PendingDocument { charged_bytes: 40, ..pending(number, 1, 0) };
    for number in [1, 2] {
        assert_eq!(reserve(stores, &empty(number), 100).await, Reservation::Reserved);
    }
    assert_eq!(reserve(stores, &empty(3), 100).await, Reservation::QuotaExceeded { used_bytes: 80 });
    let document = make_ready(stores, &empty(1)).await.unwrap();
    assert_eq!(document.size_bytes, 0, "a document shows its own size");
    stores.documents.abandon(workspace_id(1), &document_id(2)).await.unwrap();
    assert_eq!(used(stores, 1).await, 40, "what was charged is returned");
}

async fn workspace_shows_used_bytes(stores: &Stores) {
    insert_fixtures(stores).await;
    reserve(stores, &pending(1, 1, 60), 100).await;
    let found = stores.workspaces.find(workspace_id(1)).await.unwrap().unwrap();
    assert_eq!(found.storage_used_bytes, 60, "documents being written included");
    assert_eq!(used(stores, 9).await, 0, "there is no such workspace");
}

async fn claim_passes_through_its_states(stores: &Stores) {
    insert_fixtures(stores).await;
    let claim = claim("k1", "c/a");
    let state = async || stores.documents.claim_state(&claim).await.unwrap();
    let document = pending(1, 1, 10);
    assert_eq!(state().await, ClaimState::Free);
    assert_eq!(reserve_with(stores, &document, &claim).await, Reservation::Reserved);
    assert_eq!(state().await, ClaimState::InProgress);
    let again = reserve_with(stores, &pending(2, 1, 10), &claim).await;
    assert_eq!(again, Reservation::Claimed(ClaimState::InProgress));
    assert_eq!(used(stores, 1).await, 10, "nothing was changed");
    make_ready(stores, &document).await;
    assert_eq!(state().await, ClaimState::Done(ready(&document)));
    let again = reserve_with(stores, &pending(3, 1, 10), &claim).await;
    assert_eq!(again, Reservation::Claimed(ClaimState::Done(ready(&document))));
    let unknown = stores.documents.find_unknown(&[document_id(2), document_id(3)]).await.unwrap();
    assert_eq!(unknown, [document_id(2), document_id(3)], "nothing was added");
}

async fn claim_is_bound_to_key_operation_and_subject(stores: &Stores) {
    insert_fixtures(stores).await;
    let claimed = claim("k1", "c/a");
    let document = pending(1, 1, 10);
    reserve_with(stores, &document, &claimed).await;
    for _ in ["while it is in progress", "when it is done"] {
        let other_subject = claim("k1", "c/b");
        assert_eq!(stores.documents.claim_state(&other_subject).await.unwrap(), ClaimState::Reused);
        let reused = reserve_with(stores, &pending(2, 1, 10), &other_subject).await;
        assert_eq!(reused, Reservation::Claimed(ClaimState::Reused));
        for free in [
            claim("K1", "c/a"),
            IdempotencyClaim { api_key: key_id(2), ..claimed.clone() },
            IdempotencyClaim { operation: "another", ..claimed.clone() },
        ] {
            assert_eq!(stores.documents.claim_state(&free).await.unwrap(), ClaimState::Free, "{free:?}");
        }
        make_ready(stores, &document).await;
    }
    assert_eq!(reserve_with(stores, &pending(3, 1, 1), &claim("K1", "c/b")).await, Reservation::Reserved);
}

async fn claim_ends_with_its_pending_document(stores: &Stores) {
    insert_fixtures(stores).await;
    let claim = claim("k1", "c/a");
    reserve_with(stores, &pending(1, 1, 10), &claim).await;
    stores.documents.abandon(workspace_id(1), &document_id(1)).await.unwrap();
    assert_eq!(stores.documents.claim_state(&claim).await.unwrap(), ClaimState::Free, "failures are not remembered");
    assert_eq!(reserve_with(stores, &pending(2, 1, 10), &claim).await, Reservation::Reserved);
    stores.documents.abandon_stale(at(100)).await.unwrap();
    assert_eq!(stores.documents.claim_state(&claim).await.unwrap(), ClaimState::Free, "swept ones neither");
    assert_eq!(reserve_with(stores, &pending(3, 1, 10), &claim).await, Reservation::Reserved);
}

async fn claim_expires(stores: &Stores) {
    insert_fixtures(stores).await;
    for (number, key) in [(10, "k1"), (20, "k2")] {
        let document = pending(number, 1, 10);
        reserve_with(stores, &document, &claim(key, "c/a")).await;
        make_ready(stores, &document).await;
    }
    let early_enough = IdempotencyClaim { not_before: at(10), ..claim("k1", "c/a") };
    assert!(matches!(stores.documents.claim_state(&early_enough).await.unwrap(), ClaimState::Done(_)));
    let late = IdempotencyClaim { not_before: at(10) + TimeDelta::milliseconds(1), ..claim("k1", "c/b") };
    assert_eq!(stores.documents.claim_state(&late).await.unwrap(), ClaimState::Free, "forgotten, whatever the subject");
    assert_eq!(reserve_with(stores, &pending(30, 1, 10), &late).await, Reservation::Reserved, "and taken anew");
    assert_eq!(stores.documents.claim_state(&late).await.unwrap(), ClaimState::InProgress);
    assert_eq!(stores.documents.delete_claims(at(20)).await.unwrap(), 0, "the older claim was replaced");
    assert_eq!(stores.documents.delete_claims(at(25)).await.unwrap(), 1);
    assert_eq!(stores.documents.claim_state(&claim("k2", "c/a")).await.unwrap(), ClaimState::Free);
    assert!(stores.documents.find(workspace_id(1), &document_id(20)).await.unwrap().is_some(), "the document stays");
}

async fn concurrent_claims_reserve_once(stores: &Stores) {
    insert_fixtures(stores).await;
    let rivals = (1..=12).map(|number| async move {
        // There is room for one: a repeated call must not fail by the quota that the first call used.
        let document = pending(number, 1, 100);
        stores.documents.reserve(&document, byte_quota(100), Some(&claim("k1", "c/a"))).await.unwrap()
    });
    let results = join_all(rivals).await;
    let count = |wanted: &Reservation| results.iter().filter(|result| *result == wanted).count();
    assert_eq!(count(&Reservation::Reserved), 1, "{results:?}");
    assert_eq!(count(&Reservation::Claimed(ClaimState::InProgress)), 11, "{results:?}");
    assert_eq!(used(stores, 1).await, 100);
}

async fn concurrent_ready_and_abandon_have_one_effect(stores: &Stores) {
    insert_fixtures(stores).await;
    for number in 1..=4 {
        let document = pending(number, 1, 10);
        reserve(stores, &document, 1_000).await;
        let acts = (0..6).map(|act| {
            let document = &document;
            async move {
                match act % 3 {
                    0 => make_ready(stores, document).await.is_some(),
                    1 => stores.documents.abandon(document.workspace_id, &document.id).await.unwrap(),
                    _ => !stores.documents.abandon_stale(at(1_000)).await.unwrap().is_empty(),
                }
            }
        });
        let done = join_all(acts).await;
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "exactly one has its way: {done:?}");
        let kept = stores.documents.find(workspace_id(1), &document.id).await.unwrap().is_some();
        assert_eq!(kept, done[0] || done[3]);
    }
}

async fn abandon_stale_removes_old_pending_documents_only(stores: &Stores) {
    insert_fixtures(stores).await;
    for (number, workspace) in [(1, 1), (2, 2), (3, 1), (4, 1)] {
        reserve(stores, &pending(number, workspace, 10), 1_000).await;
    }
    make_ready(stores, &pending(1, 1, 10)).await;
    let mut stale = stores.documents.abandon_stale(at(4)).await.unwrap();
    stale.sort_by_key(|document| document.created_at);
    assert_eq!(stale, [pending(2, 2, 10), pending(3, 1, 10)], "neither the ready one nor the young one");
    assert_eq!((used(stores, 1).await, used(stores, 2).await), (20, 0));
    assert_eq!(stores.documents.abandon_stale(at(4)).await.unwrap(), []);
    assert!(make_ready(stores, &pending(4, 1, 10)).await.is_some(), "the young one goes on");
}

async fn list_pending_returns_pending_documents_with_their_processes(stores: &Stores) {
    insert_fixtures(stores).await;
    assert_eq!(stores.documents.list_pending().await.unwrap(), []);
    let process = "01990000-0000-7000-8000-0000000000aa".parse().unwrap();
    let of_process = PendingDocument { process: Some(process), ..pending(1, 1, 10) };
    for document in [&of_process, &pending(2, 2, 20), &pending(3, 1, 30)] {
        assert_eq!(reserve(stores, document, 1_000).await, Reservation::Reserved);
    }
    make_ready(stores, &pending(3, 1, 30)).await;
    let mut found = stores.documents.list_pending().await.unwrap();
    found.sort_by_key(|document| document.created_at);
    assert_eq!(found, [of_process, pending(2, 2, 20)]);
}

async fn unknown_returns_missing_ids(stores: &Stores) {
    insert_fixtures(stores).await;
    for number in [1, 2, 3] {
        reserve(stores, &pending(number, 1, 1), 1_000).await;
    }
    make_ready(stores, &pending(1, 1, 1)).await;
    stores.documents.abandon(workspace_id(1), &document_id(3)).await.unwrap();
    let asked: Vec<_> = (1..=4).map(document_id).collect();
    let mut unknown = stores.documents.find_unknown(&asked).await.unwrap();
    unknown.sort();
    assert_eq!(unknown, [document_id(3), document_id(4)], "pending and ready ones are known");
    assert_eq!(stores.documents.find_unknown(&[]).await.unwrap(), []);
    let many: Vec<_> = (100..1_600).map(document_id).collect();
    assert_eq!(stores.documents.find_unknown(&many).await.unwrap().len(), many.len());
}

async fn own_workspaces_are_those_that_exist_or_existed(stores: &Stores) {
    add_workspace(stores, 1).await;
    add_workspace(stores, 2).await;
    let gone = stores.workspaces.find(workspace_id(2)).await.unwrap().unwrap();
    let deleted = stores.workspaces.delete(&gone, false, 0, &audit()).await.unwrap();
    assert_eq!(deleted, WorkspaceDeletion::Deleted);
    let asked = [3, 2, 1].map(workspace_id);
    let mut own = stores.documents.find_own_workspaces(&asked).await.unwrap();
    own.sort_unstable();
    assert_eq!(own, [workspace_id(1), workspace_id(2)]);
    assert_eq!(stores.documents.find_own_workspaces(&[]).await.unwrap(), []);
}

async fn list_returns_ready_documents_page_by_page(stores: &Stores) {
    insert_fixtures(stores).await;
    for (number, workspace) in [(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)] {
        reserve(stores, &pending(number, workspace, 10), 1_000).await;
        if number != 4 {
            make_ready(stores, &pending(number, workspace, 10)).await;
        }
    }
    let of_one = [pending(1, 1, 10), pending(3, 1, 10), pending(5, 1, 10)].map(|pending| ready(&pending));
    let mut sorted = of_one.to_vec();
    sorted.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(stores.documents.list(Some(workspace_id(1)), None, 10).await.unwrap(), sorted, "without pending ones");
    let first = stores.documents.list(Some(workspace_id(1)), None, 2).await.unwrap();
    let rest = stores.documents.list(Some(workspace_id(1)), Some(&first[1].id), 2).await.unwrap();
    assert_eq!([first, rest].concat(), sorted);
    assert_eq!(stores.documents.list(None, None, 10).await.unwrap().len(), 4, "of all workspaces");
    assert_eq!(stores.documents.list(Some(workspace_id(3)), None, 10).await.unwrap(), []);
}

async fn scan_returns_documents_of_all_workspaces_page_by_page(stores: &Stores) {
    insert_fixtures(stores).await;
    for (number, workspace) in [(3, 1), (1, 2), (4, 1), (2, 1)] {
        let document = pending(number, workspace, 1);
        reserve(stores, &document, 1_000).await;
        if number != 2 {
            make_ready(stores, &document).await;
        }
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = stores.documents.scan(after.as_deref(), 2).await.unwrap();
        assert!(page.documents.len() <= 2 && page.unreadable.is_empty(), "{page:?}");
        found.extend(page.documents);
        after = page.last;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [(1, 2), (3, 1), (4, 1)].map(|(number, workspace)| ready(&pending(number, workspace, 1))));
}

async fn delete_returns_bytes_and_is_audited(stores: &Stores) {
    insert_fixtures(stores).await;
    let (kept, deleted, unready) = (pending(1, 1, 10), pending(2, 1, 20), pending(3, 1, 30));
    let claimed = claim("k1", "c/a");
    assert_eq!(reserve_with(stores, &deleted, &claimed).await, Reservation::Reserved);
    for document in [&kept, &unready] {
        reserve(stores, document, 1_000).await;
    }
    make_ready(stores, &kept).await;
    make_ready(stores, &deleted).await;
    let audit = AuditDraft::done(&Actor::system(), "document.delete", "document", Json::object([]));
    let delete = |workspace: u64, document: &PendingDocument| {
        let (workspace, id, audit) = (workspace_id(workspace), document.id.clone(), audit.clone());
        async move { stores.documents.delete(workspace, &id, &audit).await.unwrap() }
    };
    let entries = stores.audit.newest(100).await.unwrap().len();
    assert_eq!(delete(2, &deleted).await, None, "a document of another workspace");
    assert_eq!(delete(1, &unready).await, None, "a pending document");
    assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries);

    let rivals = join_all((0..8).map(|_| delete(1, &deleted))).await;
    assert_eq!(rivals.iter().flatten().collect::<Vec<_>>(), [&ready(&deleted)], "deleted once");
    assert_eq!(stores.audit.newest(100).await.unwrap().len(), entries + 1);
    assert_eq!(stores.documents.find(workspace_id(1), &deleted.id).await.unwrap(), None);
    assert_eq!(stores.documents.find(workspace_id(1), &kept.id).await.unwrap(), Some(ready(&kept)));
    assert_eq!(used(stores, 1).await, 40);
    assert_eq!(stores.documents.claim_state(&claimed).await.unwrap(), ClaimState::Free, "its claim is gone");
}
