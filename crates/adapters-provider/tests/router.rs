//! Each call goes to the provider that its endpoint names.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use adapters_provider::{ProviderRouter, SandboxProvider};
use domain::decision::{DecisionProvider, ProviderCall};
use domain::routing::{AttemptFailureKind, ProviderSlug};
use support::Upstream;

#[tokio::test]
async fn router_calls_named_provider() {
    let upstream = Upstream::answering(support::ok(support::ANSWER)).await;
    let slug = |text: &str| text.parse::<ProviderSlug>().unwrap();
    let router = ProviderRouter::new(HashMap::from([
        (slug("sandbox"), Arc::new(SandboxProvider::new()) as Arc<dyn DecisionProvider>),
        (slug("acme"), support::provider(&upstream)),
    ]));
    assert_eq!(router.decide(support::call()).await.unwrap().usage.unwrap().input_tokens, 3);
    assert_eq!(upstream.seen(), 1);

    let sandbox = Arc::new(SandboxProvider::endpoints().remove(0));
    let answer = router.decide(ProviderCall { endpoint: sandbox, ..support::call() }).await.unwrap();
    assert_eq!(answer.answers.text(), r#"{"a":{"type":"noul","noul":0.5}}"#);
    assert_eq!(upstream.seen(), 1);

    let mut nobody = support::endpoint();
    nobody.provider = slug("nobody");
    let failure = router.decide(ProviderCall { endpoint: Arc::new(nobody), ..support::call() }).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectFailed);
}
