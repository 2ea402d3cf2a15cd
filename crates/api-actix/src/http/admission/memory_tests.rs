use super::*;
use crate::http::recorder::NoRecorder;
use domain::testing::SequentialIds;

/// Returns a body memory with these limits.
pub(crate) fn memory(limit: usize, share: usize) -> Arc<BodyMemory> {
    let settings = AdmissionSettings {
        body_memory_bytes: limit,
        body_memory_bytes_per_workspace: share,
        ..AdmissionSettings::default()
    };
    Arc::new(BodyMemory::new(settings, Arc::new(NoRecorder)))
}

/// Returns an account without a workspace.
pub(crate) fn account(key: u64) -> Account {
    Account::Key(SequentialIds::key(key))
}

fn status(resized: Result<(), ApiError>) -> u16 {
    resized.err().map_or(200, |error| error.status().as_u16())
}

#[test]
fn resize_rejects_growth_above_the_share_and_above_the_limit() {
    let memory = memory(100, 60);
    let mut first = memory.lease(account(1));
    assert_eq!(status(first.resize(60)), 200);
    let mut second = memory.lease(account(1));
    assert_eq!(status(second.resize(1)), 429);
    let mut other = memory.lease(account(2));
    assert_eq!(status(other.resize(40)), 200);
    assert_eq!(status(other.resize(41)), 503);
    assert_eq!(memory.held(), 100, "a rejected resize changes nothing");
    first.resize(10).unwrap();
    assert_eq!((status(other.resize(41)), memory.held()), (200, 51));
    drop((first, second, other));
    assert!(memory.held() == 0 && memory.lock().accounts.is_empty());
}

#[test]
fn structures_count_if_they_exceed_the_copies_of_a_body() {
    let memory = memory(1_000, 600);
    let mut lease = memory.lease(account(1));
    lease.resize_for_processing(100).unwrap();
    assert_eq!(memory.held(), 400);
    assert_eq!((status(lease.hold_structures(300)), memory.held()), (200, 400));
    assert_eq!((status(lease.hold_structures(301)), memory.held()), (200, 401));
    assert_eq!((status(lease.hold_structures(301)), memory.held()), (200, 401), "they count once");
    assert_eq!(status(memory.lease(account(2)).hold_structures(601)), 413);
    let mut other = memory.lease(account(2));
    other.resize(599).unwrap();
    assert_eq!(status(memory.lease(account(3)).hold_structures(1)), 503);
}

#[test]
fn part_of_a_body_is_held_beside_it() {
    let memory = memory(1_000, 800);
    let mut lease = memory.lease(account(1));
    lease.resize_for_processing(100).unwrap();
    assert_eq!((status(lease.hold_part(50, 100)), memory.held()), (200, 600), "copies");
    assert_eq!((status(lease.hold_part(10, 90)), memory.held()), (200, 700), "structures");
    assert_eq!((status(lease.hold_part(26, 0)), memory.held()), (413, 700));
    lease.return_arriving_answer(1_000);
    assert_eq!(memory.held(), 160, "the body and its parts");
    assert_eq!((status(lease.hold_elements(150, 40)), memory.held()), (200, 800), "copies of the text only");
    assert_eq!((status(lease.hold_elements(0, 1)), memory.held()), (413, 800));
}

#[test]
fn answers_are_held_above_the_limits() {
    let memory = memory(100, 60);
    let mut lease = memory.lease(account(1));
    lease.resize(10).unwrap();
    lease.hold_answer(5);
    assert_eq!(memory.held(), 10);
    lease.hold_answer(500);
    assert_eq!((memory.held(), status(memory.lease(account(2)).resize(1))), (500, 503));
    drop(lease);
    assert!(memory.held() == 0 && memory.lock().accounts.is_empty());
}

#[test]
fn arriving_answers_are_held_within_the_limits_until_they_are_written() {
    let memory = memory(1_000, 600);
    let mut lease = memory.lease(account(1));
    lease.resize_for_processing(50).unwrap();
    assert_eq!((lease.hold_arriving_answer(100), memory.held()), (true, 600));
    assert_eq!((lease.hold_arriving_answer(1), memory.held()), (false, 600));
    lease.return_arriving_answer(40);
    assert_eq!((lease.hold_arriving_answer(40), memory.held()), (true, 600), "an unused answer is returned");
    lease.return_arriving_answer(1_000);
    assert_eq!((memory.held(), lease.hold_arriving_answer(100)), (50, true), "the body stays");
    assert_eq!(memory.held(), 450);
    lease.shrink_to(110);
    lease.hold_answer(110);
    assert_eq!(memory.held(), 110);
    lease.shrink_to(500);
    assert_eq!(memory.held(), 110, "it only shrinks");
    drop(lease);
    assert_eq!(memory.held(), 0);
}

#[test]
fn rejection_says_which_share_and_when_to_retry() {
    let memory = memory(100, 60);
    let error = memory.lease(account(1)).resize(61).unwrap_err();
    let view = error.parts();
    assert_eq!((view.status.as_u16(), view.retry_after), (429, Some(RETRY_AFTER)));
    assert!(error.text().contains("share of 60 bytes"), "{}", error.text());
    assert_eq!((&view.metadata["unit"], &view.metadata["limit"]), (&"body_bytes".into(), &60.into()));
    let mut other = memory.lease(account(2));
    other.resize(60).unwrap();
    let error = memory.lease(account(1)).resize(41).unwrap_err();
    assert_eq!((error.parts().status.as_u16(), error.parts().retry_after), (503, Some(RETRY_AFTER)));
}
