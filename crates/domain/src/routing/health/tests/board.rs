//! The board of all endpoints.

use super::*;
use crate::routing::HealthBoard;
use std::sync::atomic::{AtomicU32, Ordering};

fn report(board: &HealthBoard, endpoint: usize, observation: Observation, now: Duration) {
    board.report(&AttemptReport { endpoint, workspace: workspace(1), began: now, observation }, now);
}

fn admits(board: &HealthBoard, index: usize, now: Duration) -> bool {
    let admission = board.admit(index, workspace(1), &ScriptedRandomness::default(), now);
    !matches!(admission, Admission::Rejected { .. })
}

#[test]
fn endpoints_are_independent() {
    let board = HealthBoard::new(3, HealthPolicy::default());
    report(&board, 1, status(401), secs(1));
    assert_eq!([0, 1, 2].map(|index| board.throttling(index, secs(1)).throttled), [false, true, false]);
    assert_eq!([0, 1, 2].map(|index| admits(&board, index, secs(1))), [true, false, true]);
    let recent = |index, now| board.failed_recently(index, workspace(9), now);
    assert_eq!([0, 1, 2, 3].map(|index| recent(index, secs(30))), [false, true, false, false]);
    assert!(!recent(1, secs(31)));
    assert_eq!(board.backoff(1, workspace(1), secs(2)).unwrap().0, secs(4));
    assert_eq!(board.backoff(0, workspace(1), secs(2)), None);
    assert_eq!((board.len(), board.is_empty(), *board.policy()), (3, false, HealthPolicy::default()));
    assert!(HealthBoard::new(0, HealthPolicy::default()).is_empty());
}

#[test]
fn successor_shares_health_of_same_endpoints() {
    let board = HealthBoard::new(2, HealthPolicy::default());
    report(&board, 1, status(401), secs(1));
    let next = board.succeeded_by(&[None, Some(1), Some(7)]);
    let throttled = |board: &HealthBoard, now| [0, 1, 2].map(|index| board.throttling(index, now).throttled);
    assert_eq!((next.len(), throttled(&next, secs(1))), (3, [false, true, false]));
    // An attempt that began before ends after.
    report(&board, 1, status(401), secs(4));
    assert_eq!(next.backoff(1, workspace(1), secs(4)).unwrap().0, secs(5));
    let fresh = next.succeeded_by(&[None, None]);
    assert_eq!(throttled(&fresh, secs(4)), [false; 3]);
}

#[test]
fn unknown_index_has_no_state() {
    let board = HealthBoard::new(1, HealthPolicy::default());
    for _ in 0..50 {
        report(&board, 1, status(401), secs(1));
    }
    assert!(admits(&board, 1, secs(1)) && !board.failed_recently(1, workspace(1), secs(1)));
    assert_eq!(board.throttling(1, secs(1)).accept_rate, None);
    assert_eq!((board.view(0, secs(1)).observations, board.view(1, secs(1)).observations), (0, 0));
}

#[test]
fn single_thread_gets_due_probe_when_many_ask() {
    let board = HealthBoard::new(1, HealthPolicy::default());
    report(&board, 0, status(401), secs(0));
    let probes = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    if admits(&board, 0, secs(5)) {
                        probes.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(probes.into_inner(), 1);
}
