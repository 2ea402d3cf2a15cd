use std::cell::Cell;

use super::*;
use crate::container::{BlobMeta, CopiedBlob, MockBlobStore};
use crate::error::ErrorKind;
use crate::file::MockDocumentRepository;
use crate::ids::{ProcessId, WorkspaceId};
use crate::system::Clock;
use crate::testing::{FixedClock, ManualTimer, SequentialIds};
use mockall::Sequence;
use rstest::rstest;

const QUOTA: DocumentQuota = DocumentQuota { bytes: 5_000, documents: 7 };
const LIMITS: StorageLimits = StorageLimits { max_file_bytes: 1_000, quota: QUOTA, min_charged_bytes: 64 };
/// `cfile_` and the encoded form of `out/report.csv`.
const FILE: &str = "cfile_b3V0L3JlcG9ydC5jc3Y";

fn workspace() -> WorkspaceId {
    WorkspaceId::from_uuid(SequentialIds::uuid(900))
}

fn source() -> BlobKey {
    BlobKey::from_listing(format!("containers/{}/box/out/report.csv", workspace()))
}

fn away() -> StoreError {
    StoreError::unavailable("away")
}

#[expect(clippy::unnecessary_wraps, reason = "as the port returns it")]
fn found(size_bytes: u64) -> Option<BlobMeta> {
    Some(BlobMeta { key: source(), size_bytes, modified_at: FixedClock::default().now(), links: 1 })
}

fn copied() -> CopyOutcome {
    CopyOutcome::Copied(CopiedBlob { sha256: "ab".repeat(32), head: b"a,b".to_vec() })
}

fn document() -> Document {
    Document {
        id: SequentialIds::default().document_id(),
        workspace_id: workspace(),
        filename: "out/report.csv".to_owned(),
        media_type: "text/csv".to_owned(),
        size_bytes: 10,
        sha256: "ab".repeat(32),
        created_at: FixedClock::default().now(),
    }
}

thread_local! {
    /// The number of detections since the promotion of this thread began.
    static DETECTED: Cell<usize> = const { Cell::new(0) };
}

/// Returns the type of the promoted file, and counts the call.
fn detect_csv(head: &[u8], filename: &str) -> String {
    DETECTED.set(DETECTED.get() + 1);
    assert_eq!((head, filename), (&b"a,b"[..], "out/report.csv"));
    "text/csv".to_owned()
}

#[derive(Default)]
struct Mocks {
    running: Option<Arc<RunningPromotions>>,
    documents: MockDocumentRepository,
    blobs: MockBlobStore,
    /// The expected number of detections of a media type.
    detected: usize,
    clock: FixedClock,
}

impl Mocks {
    /// Expects a source of ten bytes that is reserved and copied. Tests add the expectations after that.
    fn up_to_the_copy() -> Self {
        let mut mocks = Self::default();
        mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
        mocks.documents.expect_reserve().returning(|_, _, _| Ok(Reservation::Reserved));
        mocks
    }

    /// Expects `times` rollbacks, each with the row first.
    fn expect_undone(&mut self, times: usize) {
        let mut order = Sequence::new();
        for number in 1..=times {
            let id = DocumentIdOf(number).id();
            let target = BlobKey::document(workspace(), &id);
            self.documents
                .expect_abandon()
                .withf(move |owner, abandoned| *owner == workspace() && *abandoned == id)
                .once()
                .in_sequence(&mut order)
                .returning(|_, _| Ok(true));
            self.blobs
                .expect_delete()
                .withf(move |key| *key == target)
                .once()
                .in_sequence(&mut order)
                .returning(|_| Ok(true));
        }
    }

    async fn promote(self, idempotency_key: Option<&str>) -> Result<Document, PromoteError> {
        self.promote_named("box", FILE, idempotency_key).await
    }

    async fn promote_named(self, container: &str, file: &str, key: Option<&str>) -> Result<Document, PromoteError> {
        self.promote_until(container, file, key, std::future::pending()).await
    }

    async fn promote_until(
        self,
        container: &str,
        file: &str,
        key: Option<&str>,
        wait_ends: impl Future<Output = ()> + Send,
    ) -> Result<Document, PromoteError> {
        let ports = PromoteContainerFilePorts {
            documents: Arc::new(self.documents),
            blobs: Arc::new(self.blobs),
            detect_media_type: detect_csv,
            time: TimeSource { timer: Arc::new(ManualTimer::new(self.clock.clone())), clock: Arc::new(self.clock) },
            ids: Arc::new(SequentialIds::default()),
            running: self.running.unwrap_or_else(running),
        };
        let caller = InferenceKey::for_tests(SequentialIds::key(7), workspace());
        DETECTED.set(0);
        let promoted = PromoteContainerFile::new(ports, LIMITS).execute(&caller, container, file, key, wait_ends).await;
        assert_eq!(DETECTED.get(), self.detected, "detections");
        promoted
    }
}

fn process() -> ProcessId {
    ProcessId::from_uuid(SequentialIds::uuid(800))
}

fn running() -> Arc<RunningPromotions> {
    Arc::new(RunningPromotions::new(|| Some(process())))
}

/// The id of the `n`th document of a test.
struct DocumentIdOf(usize);

impl DocumentIdOf {
    fn id(&self) -> crate::ids::DocumentId {
        crate::ids::DocumentId::from_uuid(SequentialIds::uuid(self.0 as u64))
    }
}

#[tokio::test]
async fn promote_reserves_quota_then_copies_then_marks_ready() {
    let mut mocks = Mocks { detected: 1, ..Mocks::default() };
    let mut order = Sequence::new();
    mocks.blobs.expect_stat().withf(|key| *key == source()).once().in_sequence(&mut order).returning(|_| Ok(found(10)));
    mocks
        .documents
        .expect_reserve()
        .withf(|pending, quota, claim| {
            let expected = document();
            pending.id == expected.id
                && pending.workspace_id == workspace()
                && pending.filename == expected.filename
                && (pending.size_bytes, pending.charged_bytes) == (10, 64)
                && pending.process == Some(process())
                && *quota == QUOTA
                && claim.is_none()
        })
        .once()
        .in_sequence(&mut order)
        .returning(|_, _, _| Ok(Reservation::Reserved));
    mocks
        .blobs
        .expect_copy()
        .withf(|from, to, size| {
            let is_first = DETECTED.get() == 0;
            is_first && *from == source() && *to == BlobKey::document(workspace(), &document().id) && *size == 10
        })
        .once()
        .in_sequence(&mut order)
        .returning(|_, _, _| Ok(copied()));
    mocks
        .documents
        .expect_mark_ready()
        .withf(|owner, id, sha256, media_type| {
            let is_detected = DETECTED.get() == 1 && media_type == "text/csv";
            is_detected && *owner == workspace() && *id == document().id && *sha256 == "ab".repeat(32)
        })
        .once()
        .in_sequence(&mut order)
        .returning(|_, _, _, _| Ok(Some(document())));
    assert_eq!(mocks.promote(None).await.unwrap(), document());
}

#[tokio::test]
async fn promote_returns_not_found_for_missing_file() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(None));
    assert_eq!(mocks.promote(None).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn promote_rejects_file_above_size_limit() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(found(1_001)));
    let error = mocks.promote(None).await.unwrap_err();
    assert!(matches!(error, PromoteError::TooLarge { file_bytes: 1_001, max_bytes: 1_000 }), "{error}");

    let mut mocks = Mocks { detected: 1, ..Mocks::default() };
    mocks.blobs.expect_stat().returning(|_| Ok(found(1_000)));
    mocks.documents.expect_reserve().once().returning(|_, _, _| Ok(Reservation::Reserved));
    mocks.blobs.expect_copy().returning(|_, _, _| Ok(copied()));
    mocks.documents.expect_mark_ready().returning(|_, _, _, _| Ok(Some(document())));
    mocks.promote(None).await.unwrap();
}

#[tokio::test]
async fn promote_into_deleted_workspace_is_not_found_and_copies_nothing() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
    mocks.documents.expect_reserve().once().returning(|_, _, _| Ok(Reservation::UnknownWorkspace));
    let error = mocks.promote(None).await.unwrap_err();
    assert!(matches!(error, PromoteError::NotFound), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn promote_copies_nothing_when_quota_is_exhausted() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
    mocks.documents.expect_reserve().returning(|_, _, _| Ok(Reservation::QuotaExceeded { used_bytes: 4_991 }));
    let error = mocks.promote(None).await.unwrap_err();
    assert!(
        matches!(
            error,
            PromoteError::QuotaExceeded { quota_bytes: 5_000, used_bytes: 4_991, file_bytes: 10, charged_bytes: 64 }
        ),
        "{error}"
    );
    assert_eq!(error.kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn promote_rejects_document_above_count_limit() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
    mocks.documents.expect_reserve().returning(|_, _, _| Ok(Reservation::TooManyDocuments { documents: 7 }));
    let error = mocks.promote(None).await.unwrap_err();
    assert!(matches!(error, PromoteError::TooManyDocuments { max_documents: 7, documents: 7 }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn promote_charges_large_file_by_its_size() {
    let mut mocks = Mocks::default();
    mocks.blobs.expect_stat().returning(|_| Ok(found(65)));
    mocks
        .documents
        .expect_reserve()
        .withf(|pending, _, _| (pending.size_bytes, pending.charged_bytes) == (65, 65))
        .once()
        .returning(|_, _, _| Ok(Reservation::TooManyDocuments { documents: 7 }));
    mocks.promote(None).await.unwrap_err();
}

#[tokio::test]
async fn promote_rejects_hard_link_and_undoes_the_reservation() {
    let mut mocks = Mocks::up_to_the_copy();
    mocks.blobs.expect_copy().once().returning(|_, _, _| Ok(CopyOutcome::SourceLinked { links: 2 }));
    mocks.expect_undone(1);
    let error = mocks.promote(None).await.unwrap_err();
    assert!(matches!(error, PromoteError::HardLinked { links: 2 }), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn promote_keeps_bytes_when_document_is_no_longer_pending() {
    let mut mocks = Mocks { detected: 1, ..Mocks::up_to_the_copy() };
    mocks.blobs.expect_copy().returning(|_, _, _| Ok(copied()));
    // The commit succeeds, but its reply is lost.
    mocks.documents.expect_mark_ready().returning(|_, _, _, _| Err(away()));
    mocks.documents.expect_abandon().once().returning(|_, _| Ok(false));
    mocks.blobs.expect_delete().never();
    assert_eq!(mocks.promote(None).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn promote_fails_and_rolls_back_when_source_keeps_changing() {
    let mut mocks = Mocks::up_to_the_copy();
    mocks.blobs.expect_copy().times(3).returning(|_, _, _| Ok(CopyOutcome::SourceChanged));
    mocks.expect_undone(3);
    assert!(matches!(mocks.promote(None).await, Err(PromoteError::SourceChanged)));
}

#[tokio::test]
async fn promote_retries_when_source_changed_once() {
    let mut mocks = Mocks { detected: 1, ..Mocks::up_to_the_copy() };
    let mut outcomes = vec![copied(), CopyOutcome::SourceChanged];
    mocks.blobs.expect_copy().times(2).returning(move |_, _, _| Ok(outcomes.pop().unwrap()));
    mocks.documents.expect_mark_ready().once().returning(|_, _, _, _| Ok(Some(document())));
    mocks.expect_undone(1);
    mocks.promote(None).await.unwrap();
}

#[tokio::test]
async fn promote_rolls_back_when_source_disappears() {
    let mut mocks = Mocks::up_to_the_copy();
    mocks.blobs.expect_copy().returning(|_, _, _| Ok(CopyOutcome::SourceGone));
    mocks.expect_undone(1);
    assert!(matches!(mocks.promote(None).await, Err(PromoteError::NotFound)));
}

#[rstest]
#[case::claim("claim")]
#[case::stat("stat")]
#[case::reserve("reserve")]
#[case::copy("copy")]
#[case::ready("ready")]
#[case::swept("swept")]
#[tokio::test]
async fn promote_returns_unavailable_when_any_store_call_fails(#[case] step: &'static str) {
    let detected = match step {
        "ready" => 1,
        "swept" => 3,
        _ => 0,
    };
    let mut mocks = Mocks { detected, ..Mocks::default() };
    let fails = move |at: &str| if at == step { Err(away()) } else { Ok(()) };
    mocks.documents.expect_claim_state().returning(move |_| fails("claim").map(|()| ClaimState::Free));
    mocks.blobs.expect_stat().returning(move |_| fails("stat").map(|()| found(10)));
    mocks.documents.expect_reserve().returning(move |_, _, _| fails("reserve").map(|()| Reservation::Reserved));
    mocks.blobs.expect_copy().returning(move |_, _, _| fails("copy").map(|()| copied()));
    mocks
        .documents
        .expect_mark_ready()
        .returning(move |_, _, _, _| fails("ready").map(|()| (step != "swept").then(document)));
    match step {
        "copy" | "ready" => mocks.expect_undone(1),
        // The row is gone: only the bytes of each attempt are deleted.
        "swept" => {
            mocks.blobs.expect_delete().times(3).returning(|_| Ok(true));
        }
        _ => {}
    }
    assert_eq!(mocks.promote(Some("k")).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn promote_leaves_bytes_when_rollback_fails() {
    let mut mocks = Mocks::up_to_the_copy();
    mocks.blobs.expect_copy().returning(|_, _, _| Err(away()));
    mocks.documents.expect_abandon().once().returning(|_, _| Err(away()));
    mocks.blobs.expect_delete().never();
    assert_eq!(mocks.promote(None).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn promote_returns_document_of_the_process_that_took_over() {
    let mut mocks = Mocks { detected: 1, ..Mocks::default() };
    let mut states = vec![ClaimState::Done(document()), ClaimState::InProgress, ClaimState::Free];
    mocks.documents.expect_claim_state().times(3).returning(move |_| Ok(states.pop().unwrap()));
    mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
    let mut reservations = vec![Reservation::Claimed(ClaimState::InProgress), Reservation::Reserved];
    mocks.documents.expect_reserve().times(2).returning(move |_, _, _| Ok(reservations.pop().unwrap()));
    mocks.blobs.expect_copy().once().returning(|_, _, _| Ok(copied()));
    mocks.documents.expect_mark_ready().once().returning(|_, _, _, _| Ok(None));
    let own = BlobKey::document(workspace(), &DocumentIdOf(1).id());
    mocks.blobs.expect_delete().withf(move |key| *key == own).once().returning(|_| Ok(true));
    assert_eq!(mocks.promote(Some("k")).await.unwrap(), document());
}

#[tokio::test]
async fn promote_without_key_starts_again_when_its_document_was_abandoned() {
    let mut mocks = Mocks { detected: 2, ..Mocks::up_to_the_copy() };
    mocks.blobs.expect_copy().times(2).returning(|_, _, _| Ok(copied()));
    let mut ends = vec![Some(document()), None];
    mocks.documents.expect_mark_ready().times(2).returning(move |_, _, _, _| Ok(ends.pop().unwrap()));
    mocks.blobs.expect_delete().once().returning(|_| Ok(true));
    mocks.promote(None).await.unwrap();
}

#[tokio::test]
async fn promotion_is_listed_until_it_ends_without_an_answer_of_the_store() {
    let (running, id) = (running(), DocumentIdOf(1).id());
    let mut mocks = Mocks { running: Some(Arc::clone(&running)), ..Mocks::default() };
    mocks.blobs.expect_stat().returning(|_| Ok(found(10)));
    let (listed, found_id) = (Arc::clone(&running), id.clone());
    mocks.documents.expect_reserve().once().returning(move |_, _, _| {
        assert!(listed.contains(&found_id), "before the row exists");
        Ok(Reservation::Reserved)
    });
    mocks.blobs.expect_copy().returning(|_, _, _| Err(away()));
    mocks.documents.expect_abandon().returning({
        let (running, id) = (Arc::clone(&running), id.clone());
        move |_, _| {
            assert!(running.contains(&id));
            Err(away())
        }
    });
    mocks.promote(None).await.unwrap_err();
    assert!(!running.contains(&id), "its pending document is abandoned");
}

#[tokio::test]
async fn promote_returns_first_document_for_repeated_idempotency_key() {
    let mut mocks = Mocks::default();
    mocks
        .documents
        .expect_claim_state()
        .withf(|claim| {
            claim.operation == "promote"
                && claim.key.as_str() == "k"
                && claim.subject == "box/out/report.csv"
                && claim.not_before == FixedClock::default().now() - TimeDelta::hours(24)
        })
        .once()
        .returning(|_| Ok(ClaimState::Done(document())));
    assert_eq!(mocks.promote(Some("k")).await.unwrap(), document());
}

#[tokio::test]
async fn promote_rejects_idempotency_key_of_another_file() {
    let mut mocks = Mocks::default();
    mocks.documents.expect_claim_state().returning(|_| Ok(ClaimState::Reused));
    let error = mocks.promote(Some("k")).await.unwrap_err();
    assert!(matches!(error, PromoteError::IdempotencyKeyReused));
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn promote_waits_for_concurrent_call_with_same_idempotency_key() {
    let mut mocks = Mocks::default();
    let mut states = vec![ClaimState::Done(document()), ClaimState::InProgress, ClaimState::InProgress];
    mocks.documents.expect_claim_state().times(3).returning(move |_| Ok(states.pop().unwrap()));
    let clock = mocks.clock.clone();
    assert_eq!(mocks.promote(Some("k")).await.unwrap(), document());
    assert_eq!(clock.monotonic(), 2 * CLAIM_POLL);
}

#[tokio::test]
async fn promote_waits_when_another_call_takes_the_claim_first() {
    let mut mocks = Mocks::default();
    let mut states = vec![ClaimState::Done(document()), ClaimState::InProgress, ClaimState::Free];
    mocks.documents.expect_claim_state().times(3).returning(move |_| Ok(states.pop().unwrap()));
    mocks.blobs.expect_stat().once().returning(|_| Ok(found(10)));
    mocks
        .documents
        .expect_reserve()
        .withf(|_, _, claim| claim.is_some())
        .once()
        .returning(|_, _, _| Ok(Reservation::Claimed(ClaimState::InProgress)));
    assert_eq!(mocks.promote(Some("k")).await.unwrap(), document());
}

#[tokio::test]
async fn promote_returns_still_in_progress_after_the_wait_limit() {
    let mut mocks = Mocks::default();
    mocks.documents.expect_claim_state().returning(|_| Ok(ClaimState::InProgress));
    let clock = mocks.clock.clone();
    let error = mocks.promote(Some("k")).await.unwrap_err();
    assert!(matches!(error, PromoteError::StillInProgress));
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(clock.monotonic() <= CLAIM_WAIT + 2 * CLAIM_POLL);
}

#[tokio::test]
async fn promote_stops_waiting_when_it_must() {
    let mut mocks = Mocks::default();
    mocks.documents.expect_claim_state().once().returning(|_| Ok(ClaimState::InProgress));
    let clock = mocks.clock.clone();
    let error = mocks.promote_until("box", FILE, Some("k"), std::future::ready(())).await.unwrap_err();
    assert!(matches!(error, PromoteError::StillInProgress), "{error}");
    assert_eq!(clock.monotonic(), Duration::ZERO);
}

#[rstest]
#[case::container("a/b", FILE, None)]
#[case::no_container("", FILE, None)]
#[case::file("box", "b3V0", None)]
#[case::path("box", "cfile_Li4vYQ", None)]
#[case::empty_key("box", FILE, Some(""))]
#[case::key_with_a_space("box", FILE, Some("a b"))]
#[tokio::test]
async fn promote_rejects_malformed_names(#[case] container: &str, #[case] file: &str, #[case] key: Option<&str>) {
    let error = Mocks::default().promote_named(container, file, key).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
}
