//! Participants of a shared call each hold its ceiling: the bounds of all attempts that its plan allows.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::decision::ModelOptions;

fn sharing(books: &Arc<Books>, mode: SingleFlightMode) -> Plan {
    let mut plan = plan(books);
    let options = ModelOptions { single_flight: mode, ..ModelOptions::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    plan
}

/// The ceiling of a request at the two endpoints of these tests.
fn ceiling() -> i64 {
    2 * bound(&nouls(1))
}

/// A failure with unknown usage: all that was to be sent was.
fn unknown() -> Outcome {
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })
}

fn unlimited(number: u64) -> InferenceKey {
    InferenceKey::for_tests(key(number).id(), key(number).workspace_id())
}

#[tokio::test]
async fn participant_holds_the_ceiling_and_pays_its_share() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(ceiling()), Some(ceiling()), Some(most - 1)]).await;
    let world = sharing(&books, SingleFlightMode::SplitCost).build();
    let first = world.ask_with(key(1), nouls(1)).await;
    let second = world.ask_with(key(2), nouls(1)).await;
    let poor = world.ask_with(key(3), nouls(1)).await;
    assert_eq!((world.upstreams().len(), books.standing(2).await), (1, (0, ceiling())));
    assert_eq!(poor.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits, "sharing is no way round a limit");
    assert_eq!(books.claims()[0].attempts.len(), 2, "the hold accounts for each attempt of the plan");
    world.answer(0, 31).await;
    first.end().await.unwrap();
    second.end().await.unwrap();
    let (one, two) = (books.standing(1).await, books.standing(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1, books.standing(3).await), (31, 0, (0, 0)));
}

#[tokio::test]
async fn request_makes_its_own_call_when_it_cannot_hold_the_ceiling() {
    let most = bound(&nouls(1));
    for mode in [SingleFlightMode::SplitCost, SingleFlightMode::ChargeEach] {
        let books = Books::new(None, &[Some(ceiling() - 1), Some(ceiling())]).await;
        let world = sharing(&books, mode).build();
        let poor = world.ask_with(key(1), nouls(1)).await;
        assert_eq!(books.standing(1).await, (0, most), "it holds its first attempt");
        let rich = world.ask_with(key(2), nouls(1)).await;
        assert_eq!(world.upstreams(), ["a", "a"], "{mode:?}");
        world.finish(0, unknown()).await;
        let error = poor.end().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "it has no money for a fallback: {error}");
        assert_eq!(books.standing(1).await, (most, 0), "it pays for its own call");
        world.answer(1, 1).await;
        assert_eq!(rich.end().await.unwrap().cost, usd(1), "{mode:?}");
        assert_eq!((books.standing(2).await, books.records().await.len()), ((1, 0), 2));
    }
}

#[tokio::test]
async fn fallback_of_a_shared_call_asks_the_ledger_for_nothing() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(ceiling()), Some(ceiling())]).await;
    let world = sharing(&books, SingleFlightMode::SplitCost).build();
    let requests = [world.ask_with(key(1), nouls(1)).await, world.ask_with(key(2), nouls(1)).await];
    world.finish(0, unknown()).await;
    assert_eq!(world.upstreams(), ["a", "b"]);
    world.finish(1, unknown()).await;
    for request in requests {
        assert_eq!(request.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    let (one, two) = (books.standing(1).await, books.standing(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1), (2 * most, 0));
    let increased = books.entries().iter().any(|entry| matches!(entry, Entry::Extended(_) | Entry::Refused(_)));
    assert!(!increased, "{:?}", books.entries());
}

#[tokio::test]
async fn late_participant_holds_the_ceiling_and_pays_for_attempts_before_it() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(ceiling()), Some(ceiling()), Some(ceiling() - 1)]).await;
    let world = sharing(&books, SingleFlightMode::ChargeEach).build();
    let first = world.ask_with(key(1), nouls(1)).await;
    world.finish(0, unknown()).await;
    let late = world.ask_with(key(2), nouls(1)).await;
    assert_eq!((world.upstreams().len(), books.standing(2).await), (2, (0, ceiling())));
    let alone = world.ask_with(key(3), nouls(1)).await;
    assert_eq!(world.upstreams().len(), 3, "it cannot hold the ceiling");
    world.answer(2, 4).await;
    assert_eq!(alone.end().await.unwrap().cost, usd(4));
    world.answer(1, 1).await;
    for request in [first, late] {
        assert_eq!(request.end().await.unwrap().cost, usd(most + 1));
    }
    assert_eq!((books.standing(1).await, books.standing(2).await), ((most + 1, 0), (most + 1, 0)));
}

#[tokio::test]
async fn unlimited_request_shares_a_call_with_a_limited_one() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(ceiling()), None]).await;
    let world = sharing(&books, SingleFlightMode::SplitCost).build();
    let first = world.ask_with(unlimited(2), nouls(1)).await;
    let second = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(world.upstreams().len(), 1);
    world.finish(0, unknown()).await;
    world.answer(1, 2).await;
    let costs = [first.end().await.unwrap().cost.pico(), second.end().await.unwrap().cost.pico()];
    assert_eq!(costs.iter().sum::<i64>(), most + 2);
    assert_eq!(books.standing(1).await.1, 0);
}

#[tokio::test]
async fn ceiling_contains_the_smaller_sub_requests_of_a_split() {
    let books = Books::new(None, &[Some(100_000)]).await;
    let mut plan = sharing(&books, SingleFlightMode::SplitCost);
    plan.endpoints[1].own_limits.max_questions = Some(1);
    let world = plan.build();
    let request = world.ask_with(key(1), nouls(2)).await;
    assert_eq!(books.standing(1).await, (0, bound(&nouls(2)) + 2 * bound(&nouls(1))));
    world.fail(0, ConnectFailed).await;
    assert_eq!(world.upstreams(), ["a", "b", "b"]);
    world.answer(1, 1).await;
    world.answer(2, 1).await;
    assert_eq!(request.end().await.unwrap().cost, usd(2));
    assert_eq!(books.entries().len(), 2, "{:?}", books.entries());
}

#[tokio::test]
async fn request_is_not_sent_when_the_hold_of_its_ceiling_fails() {
    let books = Books::new(None, &[Some(ceiling())]).await;
    books.is_away.store(true, std::sync::atomic::Ordering::SeqCst);
    let world = sharing(&books, SingleFlightMode::SplitCost).build();
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), world.upstreams().len()), (ErrorKind::Unavailable, 0));
}
