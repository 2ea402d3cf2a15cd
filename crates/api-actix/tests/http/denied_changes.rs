//! Denied changes that are recorded in the audit log.

use std::sync::{Arc, Mutex};

use domain::audit::{DeniedChange, DeniedChangeRecorder};

use super::gateway::{BASE, Caller, Setup, guardrail};

/// Stores the recorded denials.
#[derive(Default)]
struct RecordedDenials(Mutex<Vec<DeniedChange>>);

impl DeniedChangeRecorder for RecordedDenials {
    fn record(&self, refusal: DeniedChange) {
        self.0.lock().unwrap().push(refusal);
    }
}

impl RecordedDenials {
    fn taken(&self) -> Vec<(String, String, u16)> {
        let recorded = std::mem::take(&mut *self.0.lock().unwrap());
        recorded.into_iter().map(|refusal| (refusal.actor.name, refusal.route, refusal.status)).collect()
    }
}

const ASSIGN: &str = "/guardrails/{id}/assignments/keys";

#[tokio::test]
async fn only_denied_changes_of_authenticated_callers_are_recorded() {
    let recorded = Arc::new(RecordedDenials::default());
    let gateway =
        Setup { denied_changes: Some(Arc::clone(&recorded) as Arc<dyn DeniedChangeRecorder>), ..Setup::new().await }
            .start();
    let path = ASSIGN.replace("{id}", &guardrail().to_string());
    let keys = r#"{"key_hashes":["a"]}"#;
    let expected = |caller: Caller, method: &str, status: u16| {
        vec![(format!("key:{}", caller.id()), format!("{method} {ASSIGN}"), status)]
    };

    gateway.post_json(Caller::Inference, &path, keys).await.expect_error(403);
    assert_eq!(recorded.taken(), expected(Caller::Inference, "POST", 403));
    gateway.post_json(Caller::Management, &path, "{}").await.expect_error(400);
    assert_eq!(recorded.taken(), expected(Caller::Management, "POST", 400));
    gateway.post_json(Caller::Management, &ASSIGN.replace("{id}", "nobody"), keys).await.expect_error(404);
    assert_eq!(recorded.taken(), expected(Caller::Management, "POST", 404));
    let bearer = Caller::Management.bearer();
    let under_base = format!("{BASE}{path}");
    let headers = [("Authorization", bearer.as_str())];
    gateway.send("DELETE", &under_base, &headers, b"").await.expect_error(405);
    assert_eq!(recorded.taken(), expected(Caller::Management, "DELETE", 405));
    gateway.send("MAKEUP", &under_base, &headers, b"").await.expect_error(405);
    assert_eq!(recorded.taken(), expected(Caller::Management, "other", 405), "a caller's own words are not kept");

    gateway.send("DELETE", &format!("{BASE}/files/nothing"), &headers, b"").await.expect_error(404);
    let file = (format!("key:{}", Caller::Management.id()), "DELETE /files/{id}".to_owned(), 404);
    assert_eq!(recorded.taken(), [file]);

    gateway.post_json(Caller::Management, &path, keys).await;
    gateway.get(Caller::Inference, &path, &[]).await.expect_error(403);
    gateway.post_json(Caller::Disabled, &path, keys).await.expect_error(401);
    gateway.get(Caller::Inference, "/model/no/such", &[]).await.expect_error(404);
    gateway.post_json(Caller::Management, "/api/alpha/decisions", "{}").await.expect_error(403);
    assert_eq!(recorded.taken(), [], "what was done, who is not known, what only reads, what is no management");
}
