//! Money is reserved before anything is sent, and what was used is charged.

use super::books::{Books, Entry, bound, key, plan, usd};
use super::stage::*;
use super::*;
use crate::budget::{BudgetScope, HoldRequest};
use crate::decision::MockMetrics;
use crate::decision::TokenFactor;

#[tokio::test]
async fn the_bound_is_reserved_and_what_was_used_is_charged() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let world = plan(&books).build();
    let most = bound(&nouls(1));
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(books.standing(1).await, (0, most), "before the provider answers");
    world.clock.advance(Duration::from_secs(3));
    world.answer(0, 30).await;
    let decision = asked.end().await.unwrap();
    assert_eq!((decision.cost, books.standing(1).await), (usd(30), (30, 0)));
    assert_eq!(books.entries(), [Entry::Reserved(usd(most)), Entry::Settled(usd(30))]);
    let claim = books.claims().remove(0);
    assert_eq!(claim.id, decision.id);
    assert_eq!((claim.attempts.len(), claim.attempts[0].usage_source), (1, UsageSource::UpperBound));
    let record = books.records().await.remove(0);
    assert_eq!(record.charged_at, crate::system::Clock::now(&FixedClock::default()), "when it was reserved");
}

/// The store and each process have clocks of their own; the periods of limits go by the store's.
#[tokio::test]
async fn charge_counts_in_the_day_of_its_hold_when_clocks_differ() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let held_at: DateTime<chrono::Utc> = "2026-07-15T23:59:59.999Z".parse().unwrap();
    books.clock.set(held_at);
    let world = plan(&books).build();
    // The process believes that it is days later.
    world.clock.set("2026-07-20T12:00:00Z".parse().unwrap());
    let asked = world.ask_with(key(1), nouls(1)).await;
    // Midnight passes at the store before the provider answers.
    books.clock.set("2026-07-16T00:00:05Z".parse().unwrap());
    world.answer(0, 30).await;
    asked.end().await.unwrap();
    let record = books.records().await.remove(0);
    assert_eq!(record.charged_at, held_at, "the store's day, not the process's");
    assert_eq!(record.created_at, "2026-07-20T12:00:00Z".parse::<DateTime<chrono::Utc>>().unwrap());
}

#[tokio::test]
async fn what_fits_to_the_last_picodollar_is_admitted_and_one_more_is_not() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(most), Some(most - 1)]).await;
    let world = plan(&books).build();
    let fits = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 1).await;
    fits.end().await.unwrap();
    let refused = world.ask_with(key(2), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InsufficientCredits);
    let SubmitDecisionError::LimitExceeded(overspent) = refused else { panic!("a limit refuses it: {refused}") };
    assert_eq!((overspent.scope, overspent.limit, overspent.wanted), (BudgetScope::Key, usd(most - 1), usd(most)));
    assert_eq!((world.upstreams().len(), books.records().await.len()), (1, 1), "nothing was sent for it");
}

#[tokio::test]
async fn bounds_follow_the_factor_the_overhead_and_the_dearer_price() {
    let books = Books::new(None, &[Some(1_000_000)]).await;
    let mut plan = plan(&books);
    plan.settings.max_tokens_per_byte = "1.5".parse::<TokenFactor>().unwrap();
    for endpoint in &mut plan.endpoints {
        endpoint.prices = Some(TokenPrices { prompt: price("1e-12"), completion: price("3e-12") });
    }
    let world = plan.build();
    let tokens = (bound(&nouls(1)) * 3 + 1) / 2;
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(books.standing(1).await, (0, tokens * 3));
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    world.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    world.fail(1, InvalidResponse).await;
    asked.end().await.unwrap_err();
    let record = books.records().await.remove(0);
    assert_eq!((record.input_tokens, record.output_tokens), (0, u64::try_from(tokens).unwrap()));
    assert_eq!(books.standing(1).await, (tokens * 3, 0), "what is unknown is charged by the same rule");
}

#[tokio::test]
async fn each_part_of_a_split_request_is_reserved() {
    let books = Books::new(None, &[Some(1_000_000)]).await;
    let mut plan = plan(&books);
    for endpoint in &mut plan.endpoints {
        endpoint.own_limits.max_questions = Some(1);
    }
    plan.settings.max_concurrent_subrequests = 1;
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(3)).await;
    assert_eq!(books.standing(1).await, (0, 3 * bound(&nouls(1))));
    for part in 0..3 {
        world.answer(part, 2).await;
    }
    asked.end().await.unwrap();
    assert_eq!(books.entries().len(), 2, "once for all of them");
    assert_eq!(books.standing(1).await, (6, 0));
}

#[tokio::test]
async fn free_request_is_granted_when_credit_is_used_up() {
    let books = Books::new(Some(0), &[Some(1)]).await;
    let mut plan = plan(&books);
    for endpoint in &mut plan.endpoints {
        endpoint.prices = Some(TokenPrices { prompt: price("0"), completion: price("0") });
    }
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 30).await;
    assert_eq!(asked.end().await.unwrap().cost, Usd::ZERO);
    assert_eq!(books.entries(), [Entry::Reserved(Usd::ZERO), Entry::Settled(Usd::ZERO)]);
}

#[tokio::test]
async fn attempts_of_unlimited_key_are_held_outside_any_limit() {
    let books = Books::new(None, &[None]).await;
    let world = plan(&books).build();
    let key = InferenceKey::for_tests(key(1).id(), key(1).workspace_id());
    let asked = world.ask_with(key, nouls(1)).await;
    world.answer(0, 30).await;
    asked.end().await.unwrap();
    assert_eq!(books.entries(), [Entry::Reserved(usd(bound(&nouls(1)))), Entry::Settled(usd(30))]);
    let held = books.claims().remove(0);
    assert_eq!((held.is_limited, held.attempts.len()), (false, 1));
}

#[tokio::test]
async fn a_ledger_that_is_away_is_no_answer_and_nothing_is_sent() {
    let books = Books::new(None, &[Some(1_000)]).await;
    books.is_away.store(true, std::sync::atomic::Ordering::SeqCst);
    let world = plan(&books).build();
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!((error.kind(), world.upstreams().len()), (ErrorKind::Unavailable, 0));
}

#[tokio::test]
async fn what_was_not_sent_is_given_back() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let mut plan = plan(&books);
    plan.settings.deadline = Duration::ZERO;
    let world = plan.build();
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!((books.standing(1).await, books.entries().pop()), ((0, 0), Some(Entry::Released)));
    assert!(books.records().await.is_empty());
}

#[tokio::test]
async fn who_leaves_is_charged_within_what_is_reserved() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let world = plan(&books).build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    asked.leave();
    settle().await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::ClientDisconnected);
    let spent = i64::try_from(SENT_WHEN_LEFT).unwrap() + 20;
    assert_eq!(books.standing(1).await, (spent, 0));
}

#[tokio::test]
async fn a_charge_beyond_the_bound_is_charged_and_told() {
    let books = Books::new(None, &[Some(1_000)]).await;
    let mut plan = plan(&books);
    let mut metrics = MockMetrics::new();
    metrics.expect_record_hold().times(1).withf(|refused, _| refused.is_none()).return_const(());
    metrics.expect_record_hold_exceeded().times(1).return_const(());
    metrics.expect_record_charge().times(1).withf(|record| record.cost == usd(5_000)).return_const(());
    plan.metrics = Arc::new(metrics);
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 5_000).await;
    assert_eq!(asked.end().await.unwrap().cost, usd(5_000));
    assert_eq!(books.standing(1).await, (5_000, 0), "beyond the limit of the key: nobody else is at fault");
}

/// A request beside another one that has reserved almost everything.
async fn busy() -> (Arc<Books>, Plan) {
    let books = Books::new(None, &[Some(2 * bound(&nouls(1)) - 1)]).await;
    let plan = plan(&books);
    (books, plan)
}

#[tokio::test]
async fn what_others_keep_waits_for_them_a_moment() {
    let (books, plan) = busy().await;
    let world = plan.build();
    let first = world.ask_with(key(1), nouls(1)).await;
    let second = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(world.bell.waiting(), [Duration::from_millis(10)]);
    world.ring(Duration::from_millis(10)).await;
    assert_eq!(world.bell.waiting(), [Duration::from_millis(20)]);
    world.answer(0, 1).await;
    first.end().await.unwrap();
    world.ring(Duration::from_millis(20)).await;
    assert_eq!(world.upstreams().len(), 2, "the first has settled");
    world.answer(1, 1).await;
    second.end().await.unwrap();
    assert_eq!(books.standing(1).await, (2, 0));
}

#[tokio::test]
async fn waiting_has_an_end() {
    let (books, plan) = busy().await;
    let world = plan.build();
    let _first = world.ask_with(key(1), nouls(1)).await;
    let second = world.ask_with(key(1), nouls(1)).await;
    let mut waits = Vec::new();
    while let [wait] = world.bell.waiting()[..] {
        waits.push(u64::try_from(wait.as_millis()).unwrap());
        world.ring(wait).await;
    }
    assert_eq!(waits, [10, 20, 40, 80, 100], "a quarter of a second in all");
    let error = second.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(overspent) = error else { panic!("a limit refuses it: {error}") };
    assert!(overspent.waits_for_others() && overspent.reserved == usd(bound(&nouls(1))));
    assert_eq!(books.standing(1).await, (0, bound(&nouls(1))), "nothing of it stays reserved");
}

#[tokio::test]
async fn nobody_waits_who_would_wait_in_vain() {
    let most = bound(&nouls(1));
    let books = Books::new(Some(most - 1), &[None]).await;
    let world = plan(&books).build();
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    let SubmitDecisionError::LimitExceeded(overspent) = error else { panic!("a limit refuses it: {error}") };
    assert!(overspent.is_credit && world.bell.waiting().is_empty());
}

#[tokio::test]
async fn with_no_wait_it_is_refused_at_once() {
    let (_books, mut plan) = busy().await;
    plan.settings.budget_wait = Duration::ZERO;
    let world = plan.build();
    let _first = world.ask_with(key(1), nouls(1)).await;
    let error = world.ask_with(key(1), nouls(1)).await.end().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InsufficientCredits);
}

#[tokio::test]
async fn nobody_waits_for_a_caller_that_has_left() {
    let (books, plan) = busy().await;
    let world = plan.build();
    let _first = world.ask_with(key(1), nouls(1)).await;
    let second = world.ask_with(key(1), nouls(1)).await;
    second.leave();
    settle().await;
    assert_eq!(second.end().await.unwrap_err().kind(), ErrorKind::InsufficientCredits);
    assert_eq!(books.standing(1).await, (0, bound(&nouls(1))));
}

#[tokio::test]
async fn a_slow_ledger_takes_nothing_from_the_wait() {
    let most = bound(&nouls(1));
    let busy = crate::budget::LimitExceeded {
        scope: BudgetScope::Key,
        guardrail_id: None,
        is_credit: false,
        limit: usd(most),
        reset: None,
        spent: usd(0),
        reserved: usd(1),
        wanted: usd(most),
        resets_at: None,
        is_uncertain: false,
    };
    let clock = Arc::new(std::sync::OnceLock::<FixedClock>::new());
    let (passing, refusals) = (Arc::clone(&clock), Mutex::new(vec![busy]));
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().times(2).returning(move |claim| {
        passing.get().unwrap().advance(Duration::from_millis(300));
        let refusal = refusals.lock().unwrap().pop();
        let reservation = Hold { id: claim.id, at: DateTime::UNIX_EPOCH, payer: claim.payer, amount: claim.amount };
        Ok(refusal.map_or(Ok(reservation), Err))
    });
    ledger.expect_settle().times(1).returning(|_| Ok(()));
    let books = Books::new(None, &[]).await;
    let world = Plan { ledger: Some(Arc::new(ledger)), ..plan(&books) }.build();
    assert!(clock.set(world.clock.clone()).is_ok());
    let asked = world.ask_with(key(1), nouls(1)).await;
    assert_eq!(world.bell.waiting(), [Duration::from_millis(10)], "it is asked once more, however long it took");
    world.ring(Duration::from_millis(10)).await;
    world.answer(0, 1).await;
    asked.end().await.unwrap();
}

#[tokio::test]
async fn request_is_unavailable_where_a_holder_has_not_answered_and_over_its_limit_where_it_has() {
    let most = bound(&nouls(1));
    for is_uncertain in [true, false] {
        let kept_by_others = crate::budget::LimitExceeded {
            scope: BudgetScope::Key,
            guardrail_id: None,
            is_credit: false,
            limit: usd(most),
            reset: None,
            spent: usd(0),
            reserved: usd(1),
            wanted: usd(most),
            resets_at: None,
            is_uncertain,
        };
        let mut ledger = MockLedger::new();
        ledger.expect_reserve().returning(move |_| Ok(Err(kept_by_others)));
        let books = Books::new(None, &[]).await;
        let world = Plan { ledger: Some(Arc::new(ledger)), ..plan(&books) }.build();
        let asked = world.ask_with(key(1), nouls(1)).await;
        while let [wait] = world.bell.waiting()[..] {
            world.ring(wait).await;
        }
        let expected = if is_uncertain { ErrorKind::Unavailable } else { ErrorKind::InsufficientCredits };
        assert_eq!(asked.end().await.unwrap_err().kind(), expected);
    }
}

type Counted = Arc<Mutex<Vec<Option<BudgetScope>>>>;

/// Counts reservations by who refused them.
fn counting() -> (Counted, Arc<MockMetrics>) {
    let counted = Arc::new(Mutex::new(Vec::new()));
    let mut metrics = MockMetrics::new();
    let counts = Arc::clone(&counted);
    metrics.expect_record_hold().returning(move |refused_by, _| counts.lock().unwrap().push(refused_by));
    metrics.expect_record_charge().return_const(());
    (counted, Arc::new(metrics))
}

#[tokio::test]
async fn a_refusal_is_counted_once_and_only_where_it_is_the_last_word() {
    let (_books, plan) = busy().await;
    let (counted, metrics) = counting();
    let world = Plan { metrics, ..plan }.build();
    let first = world.ask_with(key(1), nouls(1)).await;
    let refused = world.ask_with(key(1), nouls(1)).await;
    while let [wait] = world.bell.waiting()[..] {
        world.ring(wait).await;
    }
    refused.end().await.unwrap_err();
    assert_eq!(*counted.lock().unwrap(), [None, Some(BudgetScope::Key)], "five looks are one refusal");
    let admitted = world.ask_with(key(1), nouls(1)).await;
    world.answer(0, 1).await;
    first.end().await.unwrap();
    world.ring(Duration::from_millis(10)).await;
    world.answer(1, 1).await;
    admitted.end().await.unwrap();
    assert_eq!(*counted.lock().unwrap(), [None, Some(BudgetScope::Key), None], "who waited was not refused");
}

#[tokio::test]
async fn a_fallback_without_money_is_counted_and_a_race_is_not() {
    let most = bound(&nouls(1));
    let books = Books::new(None, &[Some(2 * most - 1)]).await;
    let mut plan = plan(&books);
    let hedging = Some(crate::decision::Hedging { after: Some(Duration::from_millis(50)) });
    let options = crate::decision::ModelOptions { hedging, ..Default::default() };
    plan.settings.models.insert("acme/judge".parse().unwrap(), options);
    let (counted, metrics) = counting();
    let world = Plan { metrics, ..plan }.build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.ring(Duration::from_millis(50)).await;
    assert_eq!(*counted.lock().unwrap(), [None], "the request can do without a race");
    let sent_bytes = u64::try_from(nouls(1).provider_input.len_bytes()).unwrap();
    world.finish(0, Err(AttemptFailure { sent_bytes, ..failure(TimedOut).unwrap_err() })).await;
    asked.end().await.unwrap_err();
    assert_eq!(*counted.lock().unwrap(), [None, Some(BudgetScope::Key)]);
}

#[tokio::test]
async fn giving_back_is_tried_again() {
    let mut ledger = MockLedger::new();
    ledger.expect_reserve().times(1).returning(|claim| {
        let HoldRequest { id, payer, amount, .. } = claim;
        Ok(Ok(Hold { id, at: DateTime::UNIX_EPOCH, payer, amount }))
    });
    let answers = Mutex::new(vec![Ok(()), Err(StoreError::unavailable("away"))]);
    ledger.expect_release().times(2).returning(move |_| answers.lock().unwrap().pop().unwrap());
    let books = Books::new(None, &[]).await;
    let mut plan = Plan { ledger: Some(Arc::new(ledger)), ..plan(&books) };
    plan.settings.deadline = Duration::ZERO;
    let world = plan.build();
    let asked = world.ask_with(key(1), nouls(1)).await;
    world.ring(Duration::from_millis(10)).await;
    assert_eq!(asked.end().await.unwrap_err().kind(), ErrorKind::TimedOut);
}
