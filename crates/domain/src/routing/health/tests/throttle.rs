//! Each rule of throttling alone.

use super::*;
use crate::routing::health::rejection_probability;
use rstest::rstest;

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-12
}

#[rstest]
#[case(0.0, 0.0, 0.0)]
#[case(1.0, 0.0, 0.5)]
#[case(9.0, 0.0, 0.9)]
#[case(10.0, 5.0, 0.0)]
#[case(99.0, 25.0, 0.49)]
#[case(10.0, 10.0, 0.0)]
fn rejection_probability_follows_formula(#[case] requests: f64, #[case] accepts: f64, #[case] expected: f64) {
    assert!(close(rejection_probability(requests, accepts, 2.0), expected));
}

#[test]
fn probability_is_within_bounds_for_every_multiplier() {
    for k in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -5.0, 0.0, 1e300] {
        for (requests, accepts) in [(0.0, 0.0), (5.0, 0.0), (5.0, 5.0), (1e18, 1.0)] {
            let probability = rejection_probability(requests, accepts, k);
            assert!((0.0..=1.0).contains(&probability), "{k}: {probability}");
        }
    }
}

#[test]
fn endpoint_is_not_throttled_below_the_minimum_of_requests() {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(9, status(500));
    assert!(!fixture.rejects(1));
    fixture.attempt(status(500));
    assert!(fixture.rejects(1));
    assert_eq!(fixture.admit(1, 10.0 / 11.0 - 1e-9), fixture.admit(1, 0.0), "10 of 11 draws are rejected");
    assert_eq!(fixture.admit(1, 10.0 / 11.0 + 1e-9), Admission::Throttled);
}

#[test]
fn endpoint_is_not_throttled_when_half_of_requests_fail() {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(50, status(500)).attempts(50, OK);
    assert_eq!(fixture.admit(1, 0.0), Admission::Normal);
    fixture.attempt(status(500));
    assert!(fixture.rejects(1), "one more in a hundred is a rejection by 1 in 102");
    assert_eq!(fixture.admit(1, 1.0 / 102.0 + 1e-9), Admission::Throttled);
}

#[test]
fn timeout_counts_as_several_requests() {
    let mut fixture = EndpointFixture::new();
    fixture.attempt(failed(AttemptFailureKind::TimedOut));
    assert!(!fixture.rejects(1));
    fixture.attempt(failed(AttemptFailureKind::TimedOut));
    assert!(fixture.rejects(1), "two of weight 5 are 10 requests");
    assert_eq!(fixture.throttling().accept_rate, Some(0.0), "the rate that is shown counts attempts");
}

#[test]
fn failures_leave_the_window_after_two_minutes() {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(20, status(500)).wait(secs(110));
    assert_eq!(fixture.admit(1, 0.99), Admission::Normal, "a probe is due");
    assert!(fixture.rejects(1));
    fixture.wait(secs(10));
    assert!(!fixture.rejects(1));
    assert_eq!(fixture.throttling().accept_rate, None);
}

#[test]
fn throttled_endpoint_gets_one_probe_per_interval() {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(40, status(500)).wait(secs(3));
    assert_eq!(fixture.retry_in(1), secs(2), "the last attempt was 3 s ago");
    fixture.wait(secs(2));
    assert_eq!(fixture.admit(1, 0.0), Admission::Normal, "a probe keeps its place in the order");
    assert_eq!(fixture.retry_in(1), secs(5), "one at a time");
}

#[rstest]
#[case::malformed(malformed())]
#[case::reset(failed(AttemptFailureKind::InvalidResponse))]
#[case::bad_request(status(400))]
#[case::forbidden(status(403))]
#[case::not_found(status(404))]
#[case::server_error(status(500))]
#[case::timeout(failed(AttemptFailureKind::TimedOut))]
#[case::overloaded(status(429))]
fn content_failures_throttle_only_their_workspace(#[case] failure: Observation) {
    let mut fixture = EndpointFixture::new();
    fixture.reports(30, 1, failure);
    assert!(fixture.rejects(1));
    assert!(!fixture.rejects(2), "another workspace");
    let view = fixture.throttling();
    assert_eq!((view.throttled, view.throttled_workspaces), (false, 1));
    assert!(!fixture.health.throttle.failed_recently(&fixture.policy, workspace(2), fixture.now));
    assert!(fixture.health.throttle.failed_recently(&fixture.policy, workspace(1), fixture.now));

    fixture.reports(30, 2, failure);
    assert!(fixture.rejects(3), "two workspaces met them");
    assert!(fixture.throttling().throttled);
    assert!(fixture.health.throttle.failed_recently(&fixture.policy, workspace(3), fixture.now));
}

#[test]
fn throttle_limits_failures_of_one_workspace_to_those_of_the_others() {
    let mut fixture = EndpointFixture::new();
    fixture.reports(1_000, 1, malformed()).report(2, malformed()).reports(20, 3, OK);
    assert!(!fixture.rejects(3), "one failure of a second workspace lets one of the first count");
    fixture.reports(20, 2, malformed());
    assert!(fixture.rejects(3));
}

#[test]
fn connection_failures_count_for_all_workspaces_at_once() {
    let mut fixture = EndpointFixture::new();
    assert_eq!(fixture.admit(3, 0.0), Admission::Normal, "the first request of all");
    fixture.reports(10, 1, failed(AttemptFailureKind::ConnectFailed));
    assert!(fixture.rejects(1) && fixture.rejects(2));
    assert!(fixture.health.throttle.failed_recently(&fixture.policy, workspace(2), fixture.now));
}

#[test]
fn last_attempt_failed_until_an_attempt_succeeds() {
    let mut fixture = EndpointFixture::new();
    assert!(!fixture.throttling().last_attempt_failed);
    for (code, is_rejected) in [(401, true), (403, false), (500, false)] {
        fixture.report(1, status(code)).report(1, Observation::Neutral);
        let view = fixture.throttling();
        assert!(view.last_attempt_failed, "{code}");
        assert_eq!(view.last_error.unwrap().is_rejected_credential(), is_rejected, "{code}");
        fixture.report(2, OK);
        let view = fixture.throttling();
        assert!(!view.last_attempt_failed && view.last_error.is_some(), "{code}");
    }
}

#[test]
fn rejected_credentials_back_off_for_all_workspaces_then_admit_probes() {
    let mut fixture = EndpointFixture::new();
    fixture.reports(500, 2, OK).report(1, status(401));
    for of in [1, 2, 3] {
        assert_eq!(fixture.retry_in(of), secs(5));
    }
    let view = fixture.throttling();
    assert_eq!((view.throttled, view.retry_in, view.rejection_probability), (true, Some(secs(5)), 1.0));
    assert_eq!(view.last_error.unwrap().to_string(), "401");
    fixture.wait(secs(5));
    assert_eq!(fixture.admit(2, 0.0), Admission::Normal, "a probe");
    assert!(fixture.rejects(2) && fixture.rejects(3), "earlier accepts do not count");
    fixture.reports(10, 2, OK);
    assert!(!fixture.rejects(2), "accepts do");
}

#[rstest]
#[case(429)]
#[case(503)]
#[case(529)]
fn retry_after_backs_off_for_all_when_two_workspaces_met_it(#[case] code: u16) {
    let mut fixture = EndpointFixture::new();
    fixture.reports(100, 1, OK).reports(100, 2, OK);
    fixture.report(1, overloaded(code, secs(20)));
    assert_eq!(fixture.retry_in(1), secs(20));
    assert!(!fixture.rejects(2) && !fixture.rejects(3));
    fixture.wait(secs(5)).report(2, overloaded(code, secs(600)));
    assert_eq!((fixture.retry_in(1), fixture.retry_in(2)), (secs(15), secs(60)), "600 s are cut to the bound");
    assert_eq!(fixture.retry_in(3), secs(15), "as long as both keep a back-off");
    fixture.wait(secs(15));
    assert!(!fixture.rejects(1) && !fixture.rejects(3));
    assert_eq!(fixture.retry_in(2), secs(45));
}

#[test]
fn backoff_never_exceeds_its_bound() {
    let policy = HealthPolicy { max_backoff: secs(7), auth_backoff: secs(99), ..HealthPolicy::default() };
    let mut fixture = EndpointFixture::with(HealthPolicy { probe_interval: secs(50), ..policy });
    fixture.report(1, overloaded(503, Duration::MAX)).report(2, status(401));
    assert_eq!((fixture.retry_in(1), fixture.retry_in(2)), (secs(7), secs(7)));
    fixture.wait(secs(7));
    assert!(!fixture.rejects(1), "a probe");
    assert_eq!(fixture.retry_in(1), secs(7), "the next probe is later, and the wait that is reported is bounded");

    let mut fixture = EndpointFixture::with(HealthPolicy { max_backoff: Duration::ZERO, ..HealthPolicy::default() });
    fixture.report(1, overloaded(503, secs(9))).report(1, status(401));
    assert!(!fixture.rejects(1), "no back-off at all");
}

#[rstest]
#[case(Observation::Neutral)]
#[case(failed(AttemptFailureKind::NoUsableAnswer))]
#[case(failed(AttemptFailureKind::ClientDisconnected))]
#[case(failed(AttemptFailureKind::RejectedByProvider))]
fn neutral_observations_do_not_count(#[case] observation: Observation) {
    let mut fixture = EndpointFixture::new();
    fixture.attempts(50, observation);
    assert!(!fixture.rejects(1));
    assert_eq!((fixture.view().observations, fixture.throttling().last_error), (0, None));
}

#[test]
fn last_error_prefers_failure_of_own_workspace() {
    let mut fixture = EndpointFixture::new();
    assert_eq!(fixture.admit(3, 0.0), Admission::Normal, "the first request of all");
    fixture.reports(20, 1, status(404)).reports(20, 2, malformed());
    let last_error = |fixture: &mut EndpointFixture, of| match fixture.admit(of, 0.0) {
        Admission::Rejected { last_error, .. } => last_error.unwrap().to_string(),
        admitted => panic!("{admitted:?}"),
    };
    assert_eq!(last_error(&mut fixture, 1), "404");
    assert_eq!(last_error(&mut fixture, 3), "an invalid response");
    fixture.report(2, failed(AttemptFailureKind::TimedOut));
    assert_eq!(last_error(&mut fixture, 2), "a timeout");
}

#[test]
fn workspaces_are_bounded_and_the_least_recently_seen_is_dropped() {
    let mut fixture = EndpointFixture::with(HealthPolicy { max_workspaces: 2, ..HealthPolicy::default() });
    fixture.reports(20, 1, status(500)).wait(secs(1)).report(2, OK);
    assert!(fixture.rejects(1));
    fixture.wait(secs(1)).report(3, OK);
    assert!(!fixture.rejects(1), "1 was seen last of all");
    for of in 10..5_000 {
        fixture.report(of, status(500));
    }
    assert_eq!(fixture.throttling().throttled_workspaces, 0, "two entries with a failure each");
}
