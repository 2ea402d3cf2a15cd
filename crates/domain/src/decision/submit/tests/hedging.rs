//! A slow attempt is raced by a second one.

use super::stage::*;
use super::*;
use crate::decision::{Hedging, ModelOptions};
use crate::routing::Observation;
use crate::usage::UnknownUsage;
use std::sync::atomic::Ordering;

const AFTER: Duration = Duration::from_millis(300);

fn hedged(after: Option<Duration>, names: &[&str]) -> Plan {
    let mut plan = Plan::new(names.iter().map(|name| endpoint("acme/judge", name, name)).collect());
    let options = ModelOptions { hedging: Some(Hedging { after }), ..ModelOptions::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    plan
}

#[tokio::test]
async fn the_second_is_asked_after_the_wait_and_the_first_good_answer_wins() {
    let world = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let asked = world.ask(nouls(1)).await;
    assert_eq!((world.upstreams().len(), world.bell.waiting()), (1, vec![AFTER]));
    world.ring(AFTER).await;
    assert_eq!(world.upstreams(), ["a", "b"]);
    assert!(world.bell.waiting().is_empty(), "no third one");
    world.clock.advance(Duration::from_millis(100));
    world.answer(1, 7).await;
    assert!(world.is_given_up(0));
    let decision = asked.end().await.unwrap();
    assert_eq!(decision.provider, "B");
    let record = world.record();
    assert_eq!(outcomes(&record.attempts), ["hedge_lost", "completed"]);
    let [lost, won] = &record.attempts[..] else { panic!("two attempts") };
    assert_eq!((lost.began, lost.latency), (Duration::ZERO, Duration::from_millis(400)));
    assert_eq!((won.began, won.latency), (AFTER, Duration::from_millis(100)));
    let bound = u64::try_from(world.call(0).provider_input.len_bytes()).unwrap() + 20;
    assert_eq!((lost.input_tokens, lost.usage_source), (bound, UsageSource::UpperBound), "it may be billed");
    assert_eq!(record.input_tokens, bound + 7);
    let view = world.health.view(0, Duration::ZERO);
    assert_eq!(view.observations, 0, "being slower says nothing");
}

#[tokio::test]
async fn a_loser_is_charged_for_what_it_sent_until_it_was_given_up() {
    let world = hedged(Some(AFTER), &["a", "b"]).build();
    world.stage.2.store(5, Ordering::Relaxed);
    let asked = world.ask(nouls(1)).await;
    world.ring(AFTER).await;
    world.answer(1, 7).await;
    asked.end().await.unwrap();
    let bound = u64::try_from(world.call(0).provider_input.len_bytes()).unwrap() + 20;
    assert_eq!(world.record().attempts[0].input_tokens, bound + 5);
}

#[tokio::test]
async fn the_first_may_still_win() {
    let world = hedged(Some(AFTER), &["a", "b"]).build();
    let asked = world.ask(nouls(1)).await;
    world.ring(AFTER).await;
    world.answer(0, 7).await;
    assert!(world.is_given_up(1));
    assert_eq!(asked.end().await.unwrap().provider, "A");
    assert_eq!(outcomes(&world.record().attempts), ["completed", "hedge_lost"]);
}

#[tokio::test]
async fn a_loser_is_free_where_what_is_unknown_is() {
    let mut plan = hedged(Some(AFTER), &["a", "b"]);
    plan.settings.unknown_usage = UnknownUsage::Free;
    let world = plan.build();
    let asked = world.ask(nouls(1)).await;
    world.ring(AFTER).await;
    world.answer(1, 7).await;
    assert_eq!(asked.end().await.unwrap().input_tokens, 7);
    assert_eq!(world.record().attempts[0].input_tokens, 0);
}

#[tokio::test]
async fn a_quick_first_is_not_raced() {
    let world = hedged(Some(AFTER), &["a", "b"]).build();
    let asked = world.ask(nouls(1)).await;
    world.answer(0, 1).await;
    asked.end().await.unwrap();
    assert_eq!(world.upstreams(), ["a"]);
}

#[tokio::test]
async fn when_the_second_fails_the_first_goes_on_and_the_other_way_round() {
    for (fails, wins, provider) in [(1, 0, "A"), (0, 1, "B")] {
        let world = hedged(Some(AFTER), &["a", "b", "c"]).build();
        let asked = world.ask(nouls(1)).await;
        world.ring(AFTER).await;
        world.fail(fails, InvalidResponse).await;
        assert_eq!(world.upstreams(), ["a", "b"], "one is still under way");
        world.answer(wins, 1).await;
        assert_eq!(asked.end().await.unwrap().provider, provider);
    }
}

#[tokio::test]
async fn there_is_one_race_a_part_and_fallbacks_follow_it() {
    let world = hedged(Some(AFTER), &["a", "b", "c", "d"]).build();
    let asked = world.ask(nouls(1)).await;
    world.ring(AFTER).await;
    world.fail(0, InvalidResponse).await;
    world.fail(1, InvalidResponse).await;
    assert_eq!(world.upstreams(), ["a", "b", "c"]);
    assert!(world.bell.waiting().is_empty(), "raced once");
    world.answer(2, 1).await;
    assert_eq!(asked.end().await.unwrap().provider, "C");
}

#[tokio::test]
async fn a_fallback_may_be_the_one_that_is_raced() {
    let world = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let asked = world.ask(nouls(1)).await;
    world.fail(0, InvalidResponse).await;
    assert_eq!((world.upstreams().len(), world.bell.waiting()), (2, vec![AFTER]), "its wait begins anew");
    world.ring(AFTER).await;
    assert_eq!(world.upstreams(), ["a", "b", "c"]);
    world.answer(2, 1).await;
    assert_eq!(asked.end().await.unwrap().provider, "C");
}

#[tokio::test]
async fn each_part_has_its_own_race() {
    let mut plan = hedged(Some(AFTER), &["a", "b"]);
    for endpoint in &mut plan.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    let world = plan.build();
    let asked = world.ask(nouls(2)).await;
    assert_eq!(world.bell.waiting(), [AFTER, AFTER]);
    world.ring(AFTER).await;
    assert_eq!(world.upstreams(), ["a", "a", "b", "b"]);
    for attempt in [2, 1] {
        world.answer(attempt, 1).await;
    }
    asked.end().await.unwrap();
    assert_eq!(outcomes(&world.record().attempts), ["hedge_lost", "completed", "completed", "hedge_lost"]);
}

#[tokio::test]
async fn one_candidate_or_none_that_is_well_is_no_race() {
    let world = hedged(Some(AFTER), &["a"]).build();
    let asked = world.ask(nouls(1)).await;
    assert!(world.bell.waiting().is_empty());
    world.answer(0, 1).await;
    asked.end().await.unwrap();

    let world = hedged(Some(AFTER), &["a", "b"]).build();
    let asked = world.ask(nouls(1)).await;
    let other = world.ask(DecisionRequest { preferences: only("b"), ..nouls(1) }).await;
    world.fail(1, Unauthorised).await;
    other.end().await.unwrap_err();
    world.ring(AFTER).await;
    assert_eq!(world.upstreams(), ["a", "b"], "b rests since, so nobody races");
    world.answer(0, 1).await;
    asked.end().await.unwrap();
}

fn only(slug: &str) -> crate::routing::RoutingPreferences {
    crate::routing::RoutingPreferences { only: Some(vec![slug.to_owned()]), ..Default::default() }
}

#[tokio::test]
async fn without_a_wait_the_95th_percentile_is_it_once_it_is_known() {
    let world = hedged(None, &["a", "b"]).build();
    let learn = || world.report(0, Observation::Succeeded { latency: Duration::from_secs(2), tokens: 1 });
    (0..19).for_each(|_| learn());
    let asked = world.ask(nouls(1)).await;
    assert!(world.bell.waiting().is_empty(), "19 answers do not tell");
    drop(asked);
    learn();
    let asked = world.ask(nouls(1)).await;
    let waits = world.bell.waiting();
    let [wait] = waits[..] else { panic!("20 do: {waits:?}") };
    assert!((Duration::from_millis(1936)..=Duration::from_millis(2064)).contains(&wait), "{wait:?}");
    drop(asked);
}

#[tokio::test]
async fn slowness_is_no_reason_to_answer_by_another_model() {
    let mut plan = hedged(Some(AFTER), &["a", "b"]);
    plan.endpoints[1].model = "acme/other".parse().unwrap();
    plan.rows.push(row("acme/other"));
    let world = plan.build();
    let asked = world.ask(DecisionRequest { fallback_models: vec!["acme/other".to_owned()], ..nouls(1) }).await;
    assert!(world.bell.waiting().is_empty());
    world.fail(0, InvalidResponse).await;
    assert!(world.bell.waiting().is_empty(), "the options of the first are not those of the second");
    world.answer(1, 1).await;
    assert_eq!(asked.end().await.unwrap().model.as_str(), "acme/other");
}

#[tokio::test]
async fn where_the_other_endpoint_rests_no_other_model_stands_in() {
    let mut plan = hedged(Some(AFTER), &["a", "b", "c"]);
    plan.endpoints[2].model = "acme/other".parse().unwrap();
    plan.rows.push(row("acme/other"));
    let world = plan.build();
    let asked = world.ask(DecisionRequest { fallback_models: vec!["acme/other".to_owned()], ..nouls(1) }).await;
    let other = world.ask(DecisionRequest { preferences: only("b"), ..nouls(1) }).await;
    world.fail(1, Unauthorised).await;
    other.end().await.unwrap_err();
    world.ring(AFTER).await;
    assert_eq!(world.upstreams(), ["a", "b"], "b rests since, and c is of another model");
    world.fail(0, InvalidResponse).await;
    assert_eq!(world.upstreams(), ["a", "b", "c"], "as a fallback it may");
    world.answer(2, 1).await;
    asked.end().await.unwrap();
}

#[tokio::test]
async fn when_the_caller_leaves_both_are_given_up() {
    let world = hedged(Some(AFTER), &["a", "b", "c"]).build();
    let asked = world.ask(nouls(1)).await;
    world.ring(AFTER).await;
    asked.leave();
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let record = world.record();
    assert_eq!((record.outcome, record.attempts.len()), (UsageOutcome::Cancelled, 2));
    assert!(record.attempts.iter().all(|attempt| attempt.input_tokens > 0), "both may be billed");
    assert!(world.admits(0) && world.admits(1));
}
