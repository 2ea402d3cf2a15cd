use super::*;
use crate::budget::{MockBudgetStore, ProcessStatus};
use crate::container::MockBlobStore;
use crate::file::MockDocumentRepository;
use crate::ids::{DocumentId, WorkspaceId};
use crate::testing::{FixedClock, SequentialIds};

const SILENCE: ProcessSilence =
    ProcessSilence { heartbeat: Duration::from_secs(5), gone_after: Duration::from_secs(15) };
const OWN: u64 = 1;

fn process(number: u64) -> ProcessId {
    ProcessId::from_uuid(SequentialIds::uuid(number))
}

fn document(number: u64) -> DocumentId {
    DocumentId::from_uuid(SequentialIds::uuid(100 + number))
}

/// Returns a pending document of a process.
fn pending(number: u64, owner: Option<u64>) -> PendingDocument {
    PendingDocument {
        id: document(number),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(900)),
        filename: "a".to_owned(),
        size_bytes: 1,
        charged_bytes: 1,
        process: owner.map(process),
        created_at: FixedClock::default().now(),
    }
}

fn row(state: ProcessState) -> ProcessStatus {
    ProcessStatus { state, number: 0, folded_sequence: 0 }
}

/// A process that shows up as live, last seen this many seconds ago.
type Seen = (u64, u64);

struct Setup {
    clock: FixedClock,
    running: Arc<RunningPromotions>,
    live: Arc<Mutex<Vec<Seen>>>,
    released: Arc<Mutex<Vec<DocumentId>>>,
    release: ReleaseAbandonedPromotions,
}

impl Setup {
    /// `rows` are the processes that are not live.
    fn new(documents: Vec<PendingDocument>, live: &[Seen], rows: &'static [(u64, ProcessState)]) -> Self {
        let (clock, running) = (FixedClock::default(), Arc::new(RunningPromotions::new(|| Some(process(OWN)))));
        let (live, released) = (Arc::new(Mutex::new(live.to_vec())), Arc::new(Mutex::new(Vec::new())));
        let (mut repository, mut blobs, mut processes) =
            (MockDocumentRepository::new(), MockBlobStore::new(), MockBudgetStore::new());
        repository.expect_list_pending().returning(move || Ok(documents.clone()));
        let log = Arc::clone(&released);
        repository.expect_abandon().returning(move |_, id| {
            log.lock().unwrap().push(id.clone());
            Ok(true)
        });
        blobs.expect_delete().returning(|_| Ok(true));
        let found = Arc::clone(&live);
        processes.expect_live_processes().returning(move || {
            let live = |&(number, silent): &Seen| LiveProcess {
                process: process(number),
                seen_at: FixedClock::default().now(),
                silent_for: Duration::from_secs(silent),
            };
            Ok(found.lock().unwrap().iter().map(live).collect())
        });
        processes.expect_process().returning(move |asked| {
            Ok(rows.iter().find(|(number, _)| process(*number) == asked).map(|(_, state)| row(*state)))
        });
        let ports = ReleaseAbandonedPromotionsPorts {
            documents: Arc::new(repository),
            blobs: Arc::new(blobs),
            processes: Arc::new(processes),
            running: Arc::clone(&running),
            clock: Arc::new(clock.clone()),
        };
        Self { clock, running, live, released, release: ReleaseAbandonedPromotions::new(ports, SILENCE) }
    }

    /// Returns the documents that one round releases.
    async fn round(&self) -> Vec<DocumentId> {
        self.released.lock().unwrap().clear();
        let count = self.release.execute().await.unwrap();
        let released = self.released.lock().unwrap().clone();
        assert_eq!(count, released.len());
        released
    }

    /// Does a round every second for this long; returns the documents of the last one.
    async fn watch(&self, seconds: u64) -> Vec<DocumentId> {
        let mut released = Vec::new();
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            released = self.round().await;
        }
        released
    }
}

#[tokio::test]
async fn own_documents_are_released_unless_they_are_being_promoted() {
    let setup = Setup::new(vec![pending(1, Some(OWN)), pending(2, Some(OWN))], &[(OWN, 0)], &[]);
    let running = setup.running.begin(&document(2));
    assert_eq!(setup.round().await, [document(1)]);
    drop(running);
    assert_eq!(setup.round().await, [document(1), document(2)]);
}

#[tokio::test]
async fn documents_are_released_once_their_process_is_not_live() {
    let documents = (2..=7).map(|number| pending(number, Some(number))).chain([pending(8, None)]).collect();
    let ended =
        &[(3, ProcessState::Ended), (4, ProcessState::Adopted), (5, ProcessState::Lost), (6, ProcessState::Live)];
    let setup = Setup::new(documents, &[(OWN, 0), (2, 0)], ended);
    let expected = [3, 4, 5].map(document);
    assert_eq!(setup.round().await, expected, "not of a live, a just started, or an unnamed process");
    // A promotion of an earlier id of this process goes on.
    let _running = setup.running.begin(&document(3));
    assert_eq!(setup.round().await, expected[1..]);
}

#[tokio::test]
async fn documents_of_a_silent_process_are_released_when_this_one_could_write_all_the_while() {
    let setup = Setup::new(vec![pending(2, Some(2))], &[(OWN, 3), (2, 60)], &[]);
    assert_eq!(setup.round().await, [], "both may have been silent in an outage");
    assert_eq!(setup.watch(14).await, []);
    assert_eq!(setup.watch(1).await, [document(2)]);
    // This process cannot write either: the watch starts again.
    setup.live.lock().unwrap()[0].1 = 11;
    assert_eq!(setup.watch(1).await, []);
    setup.live.lock().unwrap()[0].1 = 3;
    assert_eq!(setup.watch(15).await, []);
    assert_eq!(setup.watch(1).await, [document(2)]);
    // This process was paused.
    setup.clock.advance(Duration::from_secs(16));
    assert_eq!(setup.round().await, []);
    assert_eq!(setup.watch(15).await, [document(2)]);
    // The other one is back.
    setup.live.lock().unwrap()[1].1 = 0;
    assert_eq!(setup.watch(1).await, []);
}
