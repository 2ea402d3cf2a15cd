//! Rejected requests that are counted.

use std::sync::{Arc, Mutex};

use domain::testing::FixedRateLimiter;
use domain::usage::{Rejection, RejectionRecorder};

use super::gateway::{Caller, Setup, workspace};

/// Stores the recorded rejections.
#[derive(Default)]
pub struct RecordedRejections(Mutex<Vec<Rejection>>);

impl RejectionRecorder for RecordedRejections {
    fn record(&self, rejection: Rejection) {
        self.0.lock().unwrap().push(rejection);
    }
}

impl RecordedRejections {
    fn taken(&self) -> Vec<(String, bool, u16, &'static str)> {
        let recorded = std::mem::take(&mut *self.0.lock().unwrap());
        let own = Some(workspace(1));
        let row =
            |one: Rejection| (one.api_key.to_string(), one.workspace_id == own, one.status.code(), one.reason.as_str());
        recorded.into_iter().map(row).collect()
    }
}

#[tokio::test]
async fn only_rejections_of_known_keys_are_recorded() {
    let recorded = Arc::new(RecordedRejections::default());
    let setup = Setup { rejections: Arc::clone(&recorded) as Arc<dyn RejectionRecorder>, ..Setup::new().await };
    let gateway = setup.start();
    let decisions = "/api/alpha/decisions";

    gateway.post_json(Caller::Management, decisions, "{}").await.expect_error(403);
    assert_eq!(recorded.taken(), [(Caller::Management.id(), false, 403, "wrong_key_kind")]);
    gateway.post_json(Caller::Inference, "/guardrails", "{}").await.expect_error(403);
    assert_eq!(recorded.taken(), [(Caller::Inference.id(), true, 403, "wrong_key_kind")]);

    gateway.post_json(Caller::OfSuspendedWorkspace, decisions, "{}").await.expect_error(403);
    assert_eq!(recorded.taken(), [(Caller::OfSuspendedWorkspace.id(), false, 403, "workspace_suspended")]);

    gateway.post_json(Caller::Disabled, decisions, "{}").await.expect_error(401);
    gateway.get(Caller::Inference, "/model/no/such", &[]).await.expect_error(404);
    gateway.post_json(Caller::Inference, decisions, "{}").await.expect_error(400);
    assert_eq!(recorded.taken(), [], "unknown keys, and other statuses");
}

#[tokio::test]
async fn rate_limited_requests_are_recorded_with_their_reason() {
    let recorded = Arc::new(RecordedRejections::default());
    let setup = Setup {
        rejections: Arc::clone(&recorded) as Arc<dyn RejectionRecorder>,
        rate_limiter: Arc::new(FixedRateLimiter::new(1)),
        ..Setup::new().await
    };
    let gateway = setup.start();
    gateway.get(Caller::Inference, "/models/count", &[]).await;
    for _ in 0..3 {
        gateway.get(Caller::Inference, "/models/count", &[]).await.expect_error(429);
    }
    let expected = (Caller::Inference.id(), true, 429, "rate_limited");
    assert_eq!(recorded.taken(), [expected.clone(), expected.clone(), expected]);
}
