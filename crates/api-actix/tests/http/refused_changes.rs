//! Denied changes that are recorded in the audit log.

use std::sync::{Arc, Mutex};

use domain::audit::{DeniedChange, DeniedChangeRecorder};

use super::gateway::{BASE, Caller, Setup, guardrail};

/// Stores the recorded denials.
#[derive(Default)]
struct Heard(Mutex<Vec<DeniedChange>>);

impl DeniedChangeRecorder for Heard {
    fn record(&self, refusal: DeniedChange) {
        self.0.lock().unwrap().push(refusal);
    }
}

impl Heard {
    fn taken(&self) -> Vec<(String, String, u16)> {
        let heard = std::mem::take(&mut *self.0.lock().unwrap());
        heard.into_iter().map(|refusal| (refusal.actor.name, refusal.route, refusal.status)).collect()
    }
}

const ASSIGN: &str = "/guardrails/{id}/assignments/keys";

#[tokio::test]
async fn only_denied_changes_of_authenticated_callers_are_recorded() {
    let heard = Arc::new(Heard::default());
    let gateway =
        Setup { refusals: Some(Arc::clone(&heard) as Arc<dyn DeniedChangeRecorder>), ..Setup::new().await }.start();
    let path = ASSIGN.replace("{id}", &guardrail().to_string());
    let keys = r#"{"key_hashes":["a"]}"#;
    let told = |caller: Caller, method: &str, status: u16| {
        vec![(format!("key:{}", caller.id()), format!("{method} {ASSIGN}"), status)]
    };

    gateway.post_json(Caller::Inference, &path, keys).await.refusal(403);
    assert_eq!(heard.taken(), told(Caller::Inference, "POST", 403));
    gateway.post_json(Caller::Management, &path, "{}").await.refusal(400);
    assert_eq!(heard.taken(), told(Caller::Management, "POST", 400));
    gateway.post_json(Caller::Management, &ASSIGN.replace("{id}", "nobody"), keys).await.refusal(404);
    assert_eq!(heard.taken(), told(Caller::Management, "POST", 404));
    let bearer = Caller::Management.bearer();
    let under_base = format!("{BASE}{path}");
    let headers = [("Authorization", bearer.as_str())];
    gateway.send("DELETE", &under_base, &headers, b"").await.refusal(405);
    assert_eq!(heard.taken(), told(Caller::Management, "DELETE", 405));
    gateway.send("MAKEUP", &under_base, &headers, b"").await.refusal(405);
    assert_eq!(heard.taken(), told(Caller::Management, "other", 405), "a caller's own words are not kept");

    gateway.post_json(Caller::Management, &path, keys).await;
    gateway.get(Caller::Inference, &path, &[]).await.refusal(403);
    gateway.post_json(Caller::Disabled, &path, keys).await.refusal(401);
    gateway.get(Caller::Inference, "/model/no/such", &[]).await.refusal(404);
    gateway.post_json(Caller::Management, "/api/alpha/decisions", "{}").await.refusal(403);
    assert_eq!(heard.taken(), [], "what was done, who is not known, what only reads, what is no management");
}
