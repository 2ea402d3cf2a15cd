//! Further attempts are paid for before they are made, or they are not made.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::decision::{Hedging, ModelOptions};

/// A failure of which nobody knows what it used: all that was to be sent was.
fn unknown(request: &DecisionRequest) -> Outcome {
    let sent_bytes = u64::try_from(request.provider_input.len_bytes()).unwrap();
    Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })
}

#[tokio::test]
async fn a_fallback_reserves_what_is_lacking_and_no_more() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(10_000)]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    let sent = AttemptFailure { sent_bytes: 10, ..failure(InvalidResponse).unwrap_err() };
    world.finish(0, Err(sent)).await;
    assert_eq!(books.standing(1).await, (0, 30 + most), "30 for the first, and the bound of the second");
    world.answer(1, 5).await;
    asked.end().await.unwrap();
    assert_eq!(books.entries(), [Entry::Reserved(usd(most)), Entry::Extended(usd(30)), Entry::Settled(usd(35))]);
    assert_eq!(books.standing(1).await, (35, 0));
}

#[tokio::test]
async fn what_would_be_sent_is_written_once_for_each_attempt() {
    let books = Books::new(None, &[Some(10_000)]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(world.measured(), 1, "what was planned is what is tried");
    world.finish(0, unknown(&nouls(1))).await;
    assert_eq!(world.measured(), 2, "another endpoint has another bound");
    world.answer(1, 5).await;
    asked.end().await.unwrap();
    assert_eq!(world.measured(), 2);
}

#[tokio::test]
async fn after_a_failure_that_cost_nothing_the_same_money_pays_for_the_next() {
    let books = Books::new(None, &[Some(bound(&nouls(1)))]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.finish(0, Err(AttemptFailure { sent_bytes: 400, ..AttemptFailure::from_status(500, None) })).await;
    world.answer(1, 5).await;
    asked.end().await.unwrap();
    assert_eq!(books.entries().len(), 2);
}

#[tokio::test]
async fn without_money_for_a_fallback_the_failures_so_far_are_the_end() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1)]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.finish(0, unknown(&nouls(1))).await;
    let error = asked.end().await.unwrap_err();
    let SubmitDecisionError::Attempts(failed) = error else { panic!("an attempt has failed: {error}") };
    assert_eq!((failed.kind, failed.attempts.len()), (ErrorKind::TimedOut, 1));
    assert_eq!((world.upstreams(), books.standing(1).await), (vec!["a".to_owned()], (most, 0)));
    assert_eq!(books.records().await[0].outcome, UsageOutcome::Failed);
}

#[tokio::test]
async fn where_nothing_failed_but_the_limit_that_is_told() {
    // The first rests by the time that its turn comes, and the second is dearer.
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1)]).await;
    let mut plan = plan(&books);
    plan.endpoints[1] = at_price(plan.endpoints[1].clone(), "0.000000000002");
    let world = plan.build();
    let mut waits = books_kept_by_others(&world, &books).await;
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.reject_credentials(0);
    waits.leave_and_settle(&world).await;
    let error = asked.end().await.unwrap_err();
    assert!(matches!(error, SubmitDecisionError::LimitExceeded(_)), "{error}");
    assert_eq!(books.standing(1).await.1, 0, "what was reserved for the first is given back");
}

/// Another request of the same key, which has reserved everything for the moment.
struct Others(Option<Asked>);

async fn books_kept_by_others(world: &World, books: &Books) -> Others {
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert!(books.standing(1).await.1 > 0);
    Others(Some(asked))
}

impl Others {
    async fn leave_and_settle(&mut self, world: &World) {
        world.answer(0, 0).await;
        self.0.take().unwrap().end().await.unwrap();
        world.ring(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_ledger_that_goes_away_is_503_and_what_was_used_is_charged() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(10_000)]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    books.is_away.store(true, std::sync::atomic::Ordering::SeqCst);
    world.finish(0, unknown(&nouls(1))).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!((world.upstreams().len(), books.standing(1).await), (1, (most, 0)));
}

fn hedged(books: &Arc<Books>) -> Plan {
    let mut plan = plan(books);
    let hedging = Some(Hedging { after: Some(Duration::from_millis(50)) });
    let options = ModelOptions { hedging, ..ModelOptions::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    plan
}

#[tokio::test]
async fn a_hedge_is_paid_for_beside_the_attempt_that_it_races() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most)]).await;
    let world = hedged(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.ring(Duration::from_millis(50)).await;
    assert_eq!((world.upstreams().len(), books.standing(1).await), (2, (0, 2 * most)));
    world.answer(1, 3).await;
    asked.end().await.unwrap();
    assert_eq!(books.standing(1).await, (most + 3, 0), "the loser is charged its bound");
}

#[tokio::test]
async fn without_money_a_hedge_is_not_made_and_the_attempt_goes_on() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1)]).await;
    let world = hedged(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.ring(Duration::from_millis(50)).await;
    assert_eq!(world.upstreams().len(), 1);
    assert!(books.entries().contains(&Entry::Refused(usd(most))));
    world.finish(0, Err(AttemptFailure::from_status(500, None))).await;
    assert_eq!(world.upstreams(), ["a", "b"], "it is still there as a fallback, which the same money pays for");
    world.answer(1, 3).await;
    asked.end().await.unwrap();
    assert_eq!(books.standing(1).await, (3, 0));
}

#[tokio::test]
async fn money_of_parts_that_wait_is_not_spent_on_the_fallback_of_another() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most)]).await;
    let mut plan = plan(&books);
    for endpoint in &mut plan.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    plan.settings.max_concurrent_subrequests = 1;
    let world = plan.build();
    let asked = world.ask_with(key(1), DecisionRequest { partial: true, ..nouls(2) }).await;
    world.finish(0, unknown(&nouls(1))).await;
    // The first part has no money for a fallback, and the second has what was reserved for it.
    assert_eq!(world.call(1).provider_input.questions.json.text(), r#"{"q1":{"type":"noul","instructions":"?"}}"#);
    world.answer(1, 1).await;
    let decision = asked.end().await.unwrap();
    assert_eq!(
        decision.answers.json().text(),
        r#"{"q0":{"type":"error","error":"timed_out"},"q1":{"type":"noul","noul":0}}"#
    );
    assert_eq!(books.standing(1).await, (most + 1, 0));
}

#[tokio::test]
async fn smaller_parts_are_paid_for_too() {
    let books = Books::new(None, &[Some(10_000)]).await;
    let mut plan = plan(&books);
    plan.endpoints[1].own_limits.max_questions = Some(1);
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(2)).await;
    world.finish(0, unknown(&nouls(2))).await;
    assert_eq!(world.upstreams(), ["a", "b", "b"]);
    assert_eq!(books.standing(1).await, (0, bound(&nouls(2)) + 2 * bound(&nouls(1))));
    world.answer(1, 1).await;
    world.answer(2, 1).await;
    asked.end().await.unwrap();
    assert_eq!(books.standing(1).await, (bound(&nouls(2)) + 2, 0));

    let books = Books::new(None, &[Some(bound(&nouls(2)))]).await;
    let mut plan = super::books::plan(&books);
    plan.endpoints[1].own_limits.max_questions = Some(1);
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(2)).await;
    world.finish(0, unknown(&nouls(2))).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!((world.upstreams().len(), books.standing(1).await.1), (1, 0));
}

/// Two requests of a key whose limit holds the bounds of both, and not of a fallback beside them.
async fn crowded() -> (Arc<Books>, World, Asked, Asked) {
    let books = Books::new(None, &[Some(3 * bound(&nouls(1)) - 1)]).await;
    let world = plan(&books).build();
    let other = world.ask_with(key(1), nouls(1)).await;
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.finish(1, unknown(&nouls(1))).await;
    assert_eq!((world.upstreams().len(), world.bell.waiting()), (2, vec![Duration::from_millis(10)]));
    (books, world, other, asked)
}

#[tokio::test]
async fn a_fallback_waits_a_moment_for_what_others_keep() {
    let (books, world, other, asked) = crowded().await;
    world.answer(0, 1).await;
    other.end().await.unwrap();
    world.ring(Duration::from_millis(10)).await;
    assert_eq!(world.upstreams().len(), 3, "the other one has settled");
    world.answer(2, 1).await;
    asked.end().await.unwrap();
    assert_eq!(books.standing(1).await, (bound(&nouls(1)) + 2, 0));
}

#[tokio::test]
async fn a_fallback_does_not_wait_for_long_nor_for_nobody() {
    let (_books, world, _other, asked) = crowded().await;
    while let [wait] = world.bell.waiting()[..] {
        world.ring(wait).await;
    }
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(crate::system::Clock::monotonic(&world.clock), Duration::from_millis(250));

    let (_books, world, _other, asked) = crowded().await;
    asked.leave();
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(world.upstreams().len(), 2);
}
