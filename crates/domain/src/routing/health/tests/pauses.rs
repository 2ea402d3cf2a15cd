//! Pauses of the process.

use super::*;
use crate::routing::{HealthBoard, PauseDetector};
use chrono::{DateTime, Utc};

const INTERVAL: Duration = Duration::from_millis(100);
const TOLERANCE: Duration = Duration::from_millis(500);

fn wall(millis: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_700_000_000_000 + millis).unwrap()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn heartbeat_in_time_reports_no_pause() {
    let pauses = PauseDetector::new(INTERVAL, TOLERANCE);
    assert!(!pauses.was_paused_since(millis(0), secs(1_000)), "nothing beats yet");
    for beat in 0..20 {
        let late = beat * 600;
        assert_eq!(pauses.beat(millis(late), wall(i64::try_from(late).unwrap())), None);
    }
    assert!(!pauses.was_paused_since(millis(0), millis(19 * 600 + 600)));
}

#[test]
fn late_heartbeat_reports_pause_before_and_after_it_arrives() {
    let pauses = PauseDetector::new(INTERVAL, TOLERANCE);
    pauses.beat(millis(1_000), wall(0));
    assert!(!pauses.was_paused_since(millis(900), millis(1_600)));
    assert!(pauses.was_paused_since(millis(900), millis(1_601)), "the heartbeat is overdue");
    assert_eq!(pauses.beat(millis(4_000), wall(3_000)), Some(secs(3)));
    assert!(pauses.was_paused_since(millis(900), millis(4_050)), "it began before the end of the pause");
    assert!(pauses.was_paused_since(millis(3_999), millis(4_050)));
    assert!(!pauses.was_paused_since(millis(4_000), millis(4_050)), "it began after the pause");
}

#[test]
fn wall_clock_detects_suspended_machine() {
    let pauses = PauseDetector::new(INTERVAL, TOLERANCE);
    pauses.beat(millis(1_000), wall(0));
    assert_eq!(pauses.beat(millis(1_100), wall(60_000)), Some(secs(60)));
    assert!(pauses.was_paused_since(millis(1_050), millis(1_150)));
    assert_eq!(pauses.beat(millis(1_200), wall(10_000)), None, "a wall clock that is set back is no pause");
}

#[test]
fn failures_across_pause_do_not_count_but_answers_do() {
    let board = HealthBoard::with_pauses(1, HealthPolicy::default(), PauseDetector::new(INTERVAL, TOLERANCE));
    board.pauses().beat(millis(1_000), wall(0));
    let report = |began, observation, now| {
        board.report(&AttemptReport { endpoint: 0, workspace: workspace(1), began, observation }, now);
    };
    for _ in 0..50 {
        report(millis(900), failed(AttemptFailureKind::TimedOut), secs(4));
        report(millis(900), status(401), secs(4));
    }
    board.pauses().beat(secs(4), wall(3_000));
    for _ in 0..50 {
        report(millis(900), failed(AttemptFailureKind::ConnectFailed), millis(4_050));
    }
    assert_eq!(board.throttling(0, millis(4_050)), HealthBoard::new(1, HealthPolicy::default()).throttling(0, secs(4)));
    report(millis(900), OK, millis(4_050));
    assert_eq!(board.throttling(0, millis(4_050)).accept_rate, Some(1.0));
    report(millis(4_001), status(500), millis(4_050));
    assert_eq!(board.throttling(0, millis(4_050)).accept_rate, Some(0.5), "what failed after the pause counts");
}
