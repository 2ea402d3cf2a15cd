use super::*;
use crate::routing::health::{BreakerState, HealthBoard};
use std::sync::atomic::{AtomicU32, Ordering};

fn admitted(admission: Admission) -> Permit {
    match admission {
        Admission::Admitted(permit) => permit,
        Admission::Refused { retry_in } => panic!("refused for {retry_in:?}"),
    }
}

#[test]
fn endpoints_do_not_touch_each_other() {
    let board = HealthBoard::new(3, HealthPolicy::default());
    board.report(admitted(board.admit(1, secs(1))), Observation::Unauthorised, secs(1));
    let states = [0, 1, 2].map(|index| board.view(index, secs(1)).state);
    assert_eq!(states, [BreakerState::Closed, BreakerState::Open, BreakerState::Closed]);
    assert_eq!([0, 1, 2].map(|index| board.would_admit(index, secs(1))), [true, false, true]);
    assert_eq!([0, 1, 2, 3].map(|index| board.failed_recently(index, secs(30))), [false, true, false, false]);
    assert!(!board.failed_recently(1, secs(31)));
    assert!(matches!(board.admit(1, secs(2)), Admission::Refused { retry_in } if retry_in == secs(4)));
    assert_eq!((board.len(), board.is_empty(), *board.policy()), (3, false, HealthPolicy::default()));
    assert!(HealthBoard::new(0, HealthPolicy::default()).is_empty());
}

#[test]
fn asking_whether_it_would_be_admitted_takes_no_probes_place() {
    let board = HealthBoard::new(1, HealthPolicy::default());
    board.report(admitted(board.admit(0, secs(0))), Observation::Unauthorised, secs(0));
    assert!(board.would_admit(0, secs(5)) && board.would_admit(0, secs(5)));
    assert!(admitted(board.admit(0, secs(5))).is_probe());
    assert!(!board.would_admit(0, secs(5)));
}

#[test]
fn a_place_beyond_the_board_has_no_memory() {
    let board = HealthBoard::new(1, HealthPolicy::default());
    for _ in 0..10 {
        board.report(admitted(board.admit(1, secs(1))), Observation::Unauthorised, secs(1));
    }
    assert!(board.would_admit(1, secs(1)));
    assert_eq!(board.view(1, secs(1)), EndpointHealth::new().view(board.policy(), secs(1)));
    assert_eq!(board.view(0, secs(1)).observations, 0);
}

#[test]
fn of_many_threads_one_gets_the_probe() {
    let board = HealthBoard::new(1, HealthPolicy::default());
    board.report(admitted(board.admit(0, secs(0))), Observation::Unauthorised, secs(0));
    let probes = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    if let Admission::Admitted(permit) = board.admit(0, secs(5)) {
                        assert!(permit.is_probe());
                        probes.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(probes.into_inner(), 1);
}
