//! Hedges of slow attempts.

use super::fixture::*;
use super::*;
use crate::decision::{Hedging, ModelOptions};
use crate::routing::Observation;
use crate::usage::UnknownUsage;
use std::sync::atomic::Ordering;

const AFTER: Duration = Duration::from_millis(300);

fn hedged(after: Option<Duration>, names: &[&str]) -> GatewaySetup {
    let mut setup = GatewaySetup::new(names.iter().map(|name| endpoint("acme/judge", name, name)).collect());
    let options = ModelOptions { hedging: Some(Hedging { after }), ..ModelOptions::default() };
    setup.settings.models.insert("acme/judge".parse().unwrap(), options);
    setup
}

#[tokio::test(start_paused = true)]
async fn hedge_starts_after_delay_and_first_answer_wins() {
    let gateway = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let pending = gateway.send(nouls(1)).await;
    assert_eq!((gateway.upstreams().len(), gateway.timer.waiting()), (1, vec![AFTER]));
    gateway.elapse(AFTER).await;
    assert_eq!(gateway.upstreams(), ["a", "b"]);
    assert!(gateway.timer.waiting().is_empty(), "no third one");
    gateway.clock.advance(Duration::from_millis(100));
    gateway.answer(1, 7).await;
    assert!(gateway.is_cancelled(0));
    let decision = pending.end().await.unwrap();
    assert_eq!(decision.provider, "B");
    let record = gateway.record();
    assert_eq!(outcomes(&record.attempts), ["hedge_lost", "completed"]);
    let [lost, won] = &record.attempts[..] else { panic!("two attempts") };
    assert_eq!((lost.began, lost.latency), (Duration::ZERO, Duration::from_millis(400)));
    assert_eq!((won.began, won.latency), (AFTER, Duration::from_millis(100)));
    let bound = u64::try_from(gateway.call(0).provider_input.len_bytes()).unwrap() + 20;
    assert_eq!((lost.input_tokens, lost.usage_source), (bound, UsageSource::UpperBound), "it may be billed");
    assert_eq!(record.input_tokens, bound + 7);
    let view = gateway.health.view(0, Duration::ZERO);
    assert_eq!(view.observations, 0, "a lost hedge does not count for the endpoint");
}

#[tokio::test(start_paused = true)]
async fn lost_hedge_is_charged_for_bytes_sent_until_cancelled() {
    let gateway = hedged(Some(AFTER), &["a", "b"]).build();
    gateway.provider.2.store(5, Ordering::Relaxed);
    let pending = gateway.send(nouls(1)).await;
    gateway.elapse(AFTER).await;
    gateway.answer(1, 7).await;
    pending.end().await.unwrap();
    let bound = u64::try_from(gateway.call(0).provider_input.len_bytes()).unwrap() + 20;
    assert_eq!(gateway.record().attempts[0].input_tokens, bound + 5);
}

#[tokio::test(start_paused = true)]
async fn first_attempt_may_win_against_hedge() {
    let gateway = hedged(Some(AFTER), &["a", "b"]).build();
    let pending = gateway.send(nouls(1)).await;
    gateway.elapse(AFTER).await;
    gateway.answer(0, 7).await;
    assert!(gateway.is_cancelled(1));
    assert_eq!(pending.end().await.unwrap().provider, "A");
    assert_eq!(outcomes(&gateway.record().attempts), ["completed", "hedge_lost"]);
}

#[tokio::test(start_paused = true)]
async fn lost_hedge_is_free_when_unreported_usage_is_free() {
    let mut setup = hedged(Some(AFTER), &["a", "b"]);
    setup.settings.unknown_usage = UnknownUsage::Free;
    let gateway = setup.build();
    let pending = gateway.send(nouls(1)).await;
    gateway.elapse(AFTER).await;
    gateway.answer(1, 7).await;
    assert_eq!(pending.end().await.unwrap().input_tokens, 7);
    assert_eq!(gateway.record().attempts[0].input_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn quick_attempt_is_not_hedged() {
    let gateway = hedged(Some(AFTER), &["a", "b"]).build();
    let pending = gateway.send(nouls(1)).await;
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
    assert_eq!(gateway.upstreams(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn other_attempt_continues_when_one_of_two_fails() {
    for (fails, wins, provider) in [(1, 0, "A"), (0, 1, "B")] {
        let gateway = hedged(Some(AFTER), &["a", "b", "c"]).build();
        let pending = gateway.send(nouls(1)).await;
        gateway.elapse(AFTER).await;
        gateway.fail(fails, InvalidResponse).await;
        assert_eq!(gateway.upstreams(), ["a", "b"], "one is still under way");
        gateway.answer(wins, 1).await;
        assert_eq!(pending.end().await.unwrap().provider, provider);
    }
}

#[tokio::test(start_paused = true)]
async fn sub_request_is_hedged_once_and_fallbacks_follow() {
    let gateway = hedged(Some(AFTER), &["a", "b", "c", "d"]).build();
    let pending = gateway.send(nouls(1)).await;
    gateway.elapse(AFTER).await;
    gateway.fail(0, InvalidResponse).await;
    gateway.fail(1, InvalidResponse).await;
    assert_eq!(gateway.upstreams(), ["a", "b", "c"]);
    assert!(gateway.timer.waiting().is_empty(), "hedged once");
    gateway.answer(2, 1).await;
    assert_eq!(pending.end().await.unwrap().provider, "C");
}

#[tokio::test(start_paused = true)]
async fn fallback_attempt_may_be_hedged() {
    let gateway = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let pending = gateway.send(nouls(1)).await;
    gateway.fail(0, InvalidResponse).await;
    assert_eq!((gateway.upstreams().len(), gateway.timer.waiting()), (2, vec![AFTER]), "its delay starts again");
    gateway.elapse(AFTER).await;
    assert_eq!(gateway.upstreams(), ["a", "b", "c"]);
    gateway.answer(2, 1).await;
    assert_eq!(pending.end().await.unwrap().provider, "C");
}

#[tokio::test(start_paused = true)]
async fn each_sub_request_is_hedged() {
    let mut setup = hedged(Some(AFTER), &["a", "b"]);
    for endpoint in &mut setup.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    let gateway = setup.build();
    let pending = gateway.send(nouls(2)).await;
    assert_eq!(gateway.timer.waiting(), [AFTER, AFTER]);
    gateway.elapse(AFTER).await;
    assert_eq!(gateway.upstreams(), ["a", "a", "b", "b"]);
    for attempt in [2, 1] {
        gateway.answer(attempt, 1).await;
    }
    pending.end().await.unwrap();
    assert_eq!(outcomes(&gateway.record().attempts), ["hedge_lost", "completed", "completed", "hedge_lost"]);
}

#[tokio::test(start_paused = true)]
async fn no_hedge_without_other_healthy_candidate() {
    let gateway = hedged(Some(AFTER), &["a"]).build();
    let pending = gateway.send(nouls(1)).await;
    assert!(gateway.timer.waiting().is_empty());
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();

    let gateway = hedged(Some(AFTER), &["a", "b"]).build();
    let pending = gateway.send(nouls(1)).await;
    let other = gateway.send(DecisionRequest { preferences: only("b"), ..nouls(1) }).await;
    gateway.fail(1, ProviderAuthFailed).await;
    other.end().await.unwrap_err();
    gateway.elapse(AFTER).await;
    assert_eq!(gateway.upstreams(), ["a", "b"], "b is throttled, so there is no hedge");
    gateway.answer(0, 1).await;
    pending.end().await.unwrap();
}

fn only(slug: &str) -> crate::routing::RoutingPreferences {
    crate::routing::RoutingPreferences { only: Some(vec![slug.to_owned()]), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn hedge_delay_defaults_to_95th_percentile() {
    let gateway = hedged(None, &["a", "b"]).build();
    let learn = || gateway.report(0, Observation::Succeeded { latency: Duration::from_secs(2), tokens: 1 });
    (0..19).for_each(|_| learn());
    let pending = gateway.send(nouls(1)).await;
    assert!(gateway.timer.waiting().is_empty(), "19 answers do not tell");
    drop(pending);
    learn();
    let pending = gateway.send(nouls(1)).await;
    let waits = gateway.timer.waiting();
    let [wait] = waits[..] else { panic!("20 do: {waits:?}") };
    assert!((Duration::from_millis(1936)..=Duration::from_millis(2064)).contains(&wait), "{wait:?}");
    drop(pending);
}

#[tokio::test(start_paused = true)]
async fn hedge_does_not_use_another_model() {
    let mut setup = hedged(Some(AFTER), &["a", "b"]);
    setup.endpoints[1].model = "acme/other".parse().unwrap();
    setup.rows.push(row("acme/other"));
    let gateway = setup.build();
    let pending = gateway.send(DecisionRequest { fallback_models: vec!["acme/other".to_owned()], ..nouls(1) }).await;
    assert!(gateway.timer.waiting().is_empty());
    gateway.fail(0, InvalidResponse).await;
    assert!(gateway.timer.waiting().is_empty(), "the options of the first are not those of the second");
    gateway.answer(1, 1).await;
    assert_eq!(pending.end().await.unwrap().model.as_str(), "acme/other");
}

#[tokio::test(start_paused = true)]
async fn hedge_does_not_use_another_model_when_endpoint_is_throttled() {
    let mut setup = hedged(Some(AFTER), &["a", "b", "c"]);
    setup.endpoints[2].model = "acme/other".parse().unwrap();
    setup.rows.push(row("acme/other"));
    let gateway = setup.build();
    let pending = gateway.send(DecisionRequest { fallback_models: vec!["acme/other".to_owned()], ..nouls(1) }).await;
    let other = gateway.send(DecisionRequest { preferences: only("b"), ..nouls(1) }).await;
    gateway.fail(1, ProviderAuthFailed).await;
    other.end().await.unwrap_err();
    gateway.elapse(AFTER).await;
    assert_eq!(gateway.upstreams(), ["a", "b"], "b is throttled, and c serves another model");
    gateway.fail(0, InvalidResponse).await;
    assert_eq!(gateway.upstreams(), ["a", "b", "c"], "as a fallback it may");
    gateway.answer(2, 1).await;
    pending.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn disconnect_cancels_both_hedged_attempts() {
    let gateway = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let pending = gateway.send(nouls(1)).await;
    gateway.elapse(AFTER).await;
    pending.disconnect();
    assert_eq!(pending.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let record = gateway.record();
    assert_eq!((record.outcome, record.attempts.len()), (UsageOutcome::Cancelled, 2));
    assert!(record.attempts.iter().all(|attempt| attempt.input_tokens > 0), "both may be billed");
    assert!(gateway.has_no_backoff(0) && gateway.has_no_backoff(1));
}
