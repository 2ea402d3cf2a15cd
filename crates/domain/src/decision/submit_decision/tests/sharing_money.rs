//! Who shares a call pays by its own limits.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::decision::ModelOptions;

fn sharing(books: &Arc<Books>, way: Coalescing) -> Plan {
    let mut plan = plan(books);
    let options = ModelOptions { coalescing: way, ..ModelOptions::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    plan
}

/// A failure of which nobody knows what it used: all that was to be sent was.
fn unknown() -> Outcome {
    let sent_bytes = u64::try_from(nouls(1).inquiry.len_bytes()).unwrap();
    Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })
}

#[tokio::test]
async fn each_reserves_all_of_it_and_pays_its_share() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(most), Some(most), Some(most - 1)]).await;
    let world = sharing(&books, Coalescing::Shared).build();
    let first = world.ask_with(key(1), nouls(1)).await;
    let second = world.ask_with(key(2), nouls(1)).await;
    let poor = world.ask_with(key(3), nouls(1)).await;
    assert_eq!((world.upstreams().len(), books.standing(2).await), (1, (0, most)));
    assert_eq!(poor.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits, "sharing is no way round a limit");
    world.answer(0, 31).await;
    first.end().await.unwrap();
    second.end().await.unwrap();
    let (one, two) = (books.standing(1).await, books.standing(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1, books.standing(3).await), (31, 0, (0, 0)));
}

#[tokio::test]
async fn who_cannot_pay_for_a_fallback_is_put_out_and_the_others_go_on() {
    let most = bound(&nouls(1));
    for way in [Coalescing::Shared, Coalescing::Each] {
        let books = Books::new(None, &[Some(2 * most - 1), Some(2 * most)]).await;
        let world = sharing(&books, way).build();
        let poor = world.ask_with(key(1), nouls(1)).await;
        let rich = world.ask_with(key(2), nouls(1)).await;
        world.finish(0, unknown()).await;
        let error = poor.end().await.unwrap_err();
        let SubmitDecisionError::Overspent(overspent) = error else { panic!("it cannot pay: {error}") };
        assert_eq!(overspent.limit, usd(2 * most - 1));
        assert_eq!(books.standing(1).await, (0, 0), "others bear what was tried");
        world.answer(1, 1).await;
        assert_eq!(rich.end().await.unwrap().cost, usd(most + 1), "{way:?}");
        assert_eq!((books.standing(2).await, books.records().await.len()), ((most + 1, 0), 1));
    }
}

#[tokio::test]
async fn where_nobody_can_pay_for_a_fallback_each_bears_its_share_of_what_was_tried() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1), Some(2 * most - 2)]).await;
    let world = sharing(&books, Coalescing::Shared).build();
    let asked = [world.ask_with(key(1), nouls(1)).await, world.ask_with(key(2), nouls(1)).await];
    world.finish(0, unknown()).await;
    for asked in asked {
        assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
    }
    let (one, two) = (books.standing(1).await, books.standing(2).await);
    assert_eq!((one.0 + two.0, one.1 + two.1, world.upstreams().len()), (most, 0, 1));
}

#[tokio::test]
async fn who_comes_late_reserves_what_the_call_may_come_to_by_then() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most), Some(2 * most), Some(2 * most - 1)]).await;
    let world = sharing(&books, Coalescing::Each).build();
    let first = world.ask_with(key(1), nouls(1)).await;
    world.finish(0, unknown()).await;
    let late = world.ask_with(key(2), nouls(1)).await;
    assert_eq!((world.upstreams().len(), books.standing(2).await), (2, (0, 2 * most)));
    let alone = world.ask_with(key(3), nouls(1)).await;
    assert_eq!(world.upstreams().len(), 3, "who cannot pay for their call makes one of its own");
    world.answer(2, 4).await;
    assert_eq!(alone.end().await.unwrap().cost, usd(4));
    world.answer(1, 1).await;
    for asked in [first, late] {
        assert_eq!(asked.end().await.unwrap().cost, usd(most + 1));
    }
    assert_eq!((books.standing(1).await, books.standing(2).await), ((most + 1, 0), (most + 1, 0)));
}

#[tokio::test]
async fn who_is_not_limited_shares_with_who_is() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(most), None]).await;
    let world = sharing(&books, Coalescing::Shared).build();
    let free = InferenceKey::for_tests(key(2).hash(), key(2).workspace_id());
    let first = world.ask_with(free, nouls(1)).await;
    let second = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(world.upstreams().len(), 1);
    world.finish(0, unknown()).await;
    assert_eq!(second.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits);
    world.answer(1, 2).await;
    assert_eq!(first.end().await.unwrap().cost, usd(most + 2));
    assert_eq!(books.entries().last(), Some(&Entry::Settled(usd(most + 2))));
}

#[tokio::test]
async fn who_has_left_is_told_nothing_of_the_limits_of_others() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most), None]).await;
    let mut plan = sharing(&books, Coalescing::Shared);
    for endpoint in &mut plan.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    plan.endpoints[1] = at_price(plan.endpoints[1].clone(), "0.000000000009");
    plan.settings.max_parts_in_flight = 1;
    let world = plan.build();
    let limited = world.ask_with(key(1), nouls(2)).await;
    let free = InferenceKey::for_tests(key(2).hash(), key(2).workspace_id());
    let gone = world.ask_with(free, nouls(2)).await;
    assert_eq!(world.upstreams(), ["a"]);
    gone.leave();
    settle().await;
    // By the turn of the second part the first endpoint rests, and the limit leaves no room for the other one.
    world.reject_credentials(0);
    world.answer(0, 10).await;
    assert!(matches!(limited.end().await.unwrap_err(), SubmitDecisionError::Overspent(_)));
    let told = gone.end().await.unwrap_err();
    assert!(matches!(told, SubmitDecisionError::Attempts(_)), "it is no defect: {told}");
    let (one, two) = (books.standing(1).await, books.records().await);
    assert_eq!((one, two.len(), two[0].cost.pico() + two[1].cost.pico()), ((5, 0), 2, 10));
}
