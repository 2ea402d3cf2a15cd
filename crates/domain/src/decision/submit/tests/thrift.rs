//! Where a limit leaves no room for the preferred endpoint, a cheaper one is asked.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;

/// `one` at three picodollars a token before `two` at one.
fn dear_first(books: &Arc<Books>) -> Plan {
    let mut plan = plan(books);
    plan.endpoints[0] = at_price(plan.endpoints[0].clone(), "0.000000000003");
    plan
}

fn in_order(mut request: DecisionRequest) -> DecisionRequest {
    request.preferences.order = vec!["one".to_owned(), "two".to_owned()];
    request
}

#[tokio::test]
async fn a_cheaper_endpoint_is_asked_where_the_preferred_one_does_not_fit() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(3 * most - 1), Some(3 * most)]).await;
    let world = dear_first(&books).build();
    let asked = world.ask_with(key(1), in_order(nouls(1))).await;
    assert_eq!(books.standing(1).await, (0, most));
    world.answer(0, 5).await;
    assert_eq!(asked.end().await.unwrap().cost, usd(5));
    assert_eq!(books.entries(), [Entry::Refused(usd(3 * most)), Entry::Reserved(usd(most)), Entry::Settled(usd(5))]);
    let fits = world.ask_with(key(2), in_order(nouls(1))).await;
    world.answer(1, 5).await;
    fits.end().await.unwrap();
    assert_eq!(world.upstreams(), ["b", "a"], "who fits keeps the order");
}

#[tokio::test]
async fn nobody_stands_in_where_the_caller_takes_no_other() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(3 * most - 1)]).await;
    let world = dear_first(&books).build();
    let mut request = in_order(nouls(1));
    request.preferences.allow_fallbacks = false;
    let error = world.ask_with(key(1), request).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(overspent) = error else { panic!("a limit refuses it: {error}") };
    assert_eq!((overspent.wanted, world.upstreams().len()), (usd(3 * most), 0));
}

#[tokio::test]
async fn where_not_even_the_cheapest_fits_the_preferred_one_is_told_and_the_ledger_is_asked_once() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(most - 1)]).await;
    let world = dear_first(&books).build();
    let error = world.ask_with(key(1), in_order(nouls(1))).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(overspent) = error else { panic!("a limit refuses it: {error}") };
    assert_eq!(overspent.wanted, usd(3 * most));
    assert_eq!(books.entries(), [Entry::Refused(usd(3 * most))]);
}

#[tokio::test]
async fn what_would_fit_at_a_cheaper_endpoint_waits_for_others() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1)]).await;
    let world = dear_first(&books).build();
    let first = world.ask_with(key(1), in_order(nouls(1))).await;
    let second = world.ask_with(key(1), in_order(nouls(1))).await;
    assert_eq!(world.upstreams(), ["b"], "the second waits");
    world.answer(0, 1).await;
    first.end().await.unwrap();
    world.ring(Duration::from_millis(10)).await;
    world.answer(1, 1).await;
    second.end().await.unwrap();
    assert_eq!((world.upstreams(), books.standing(1).await), (vec!["b".to_owned(), "b".to_owned()], (2, 0)));
}

#[tokio::test]
async fn two_limits_are_both_kept() {
    // What the key leaves room for, the workspace's credit does not, but for the cheapest.
    let most = bound(&nouls(1));
    let books = Books::new(Some(most), &[Some(3 * most - 1)]).await;
    let mut plan = dear_first(&books);
    let middle = at_price(endpoint("acme/judge", "three", "c"), "0.000000000002");
    plan.endpoints.insert(1, middle);
    let world = plan.build();
    let mut request = nouls(1);
    request.preferences.order = ["one", "three", "two"].map(str::to_owned).into();
    let asked = world.ask_with(key(1), request).await;
    world.answer(0, 5).await;
    asked.end().await.unwrap();
    assert_eq!(world.upstreams(), ["b"]);
    assert!(books.entries().contains(&Entry::Reserved(usd(most))));
}

#[tokio::test]
async fn a_split_request_gives_up_no_more_than_it_must() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(4 * most)]).await;
    let mut plan = dear_first(&books);
    for endpoint in &mut plan.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    plan.settings.max_concurrent_subrequests = 1;
    let world = plan.build();
    let asked = world.ask_with(key(1), in_order(nouls(2))).await;
    assert_eq!(books.standing(1).await, (0, 4 * most), "one part of two at the cheaper one");
    for part in 0..2 {
        world.answer(part, 2).await;
    }
    asked.end().await.unwrap();
    let mut asked = world.upstreams();
    asked.sort();
    assert_eq!(asked, ["a", "b"]);
}

#[tokio::test]
async fn after_a_failure_that_cost_money_a_cheaper_endpoint_is_asked_before_none() {
    // `one` takes a third of the limit and fails; then there is no money for `three`, and there is for `two`.
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(3 * most - 1)]).await;
    let mut plan = plan(&books);
    plan.endpoints.insert(1, at_price(endpoint("acme/judge", "three", "c"), "0.000000000002"));
    let world = plan.build();
    let mut request = nouls(1);
    request.preferences.order = ["one", "three", "two"].map(str::to_owned).into();
    let sent_bytes = u64::try_from(request.provider_input.len_bytes()).unwrap();
    let asked = world.ask_with(key(1), request).await;
    world.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    world.answer(1, 5).await;
    asked.end().await.unwrap();
    assert_eq!(world.upstreams(), ["a", "b"]);
    let refused = books.entries().iter().filter(|entry| matches!(entry, Entry::Refused(_))).count();
    assert_eq!((refused, books.standing(1).await), (1, (most + 5, 0)));
}

#[tokio::test]
async fn remaining_candidates_keep_their_order_behind_a_cheaper_endpoint() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(3 * most)]).await;
    let mut plan = dear_first(&books);
    plan.endpoints.insert(1, at_price(endpoint("acme/judge", "three", "c"), "0.000000000002"));
    let world = plan.build();
    let preferring = |order: &[&str]| {
        let mut request = nouls(1);
        request.preferences.order = order.iter().map(|slug| (*slug).to_owned()).collect();
        request
    };
    let first = world.ask_with(key(1), preferring(&["three"])).await;
    assert_eq!((world.upstreams(), books.standing(1).await), (vec!["c".to_owned()], (0, 2 * most)));
    // Beside it there is room for the last of the order alone.
    let second = world.ask_with(key(1), preferring(&["one", "three", "two"])).await;
    assert_eq!(world.upstreams(), ["c", "b"]);
    world.answer(0, 0).await;
    first.end().await.unwrap();
    // All money is free again, and the failure costs none.
    world.finish(1, Err(AttemptFailure::from_status(500, None))).await;
    assert_eq!(world.upstreams(), ["c", "b", "a"], "the first of the order comes before the second");
    world.answer(2, 5).await;
    second.end().await.unwrap();
}
