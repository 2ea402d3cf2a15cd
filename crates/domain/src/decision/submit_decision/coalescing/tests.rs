use super::*;
use crate::decision::{Asset, ChoiceOption, DecisionDraft, Inquiry, Question, StateForm};
use crate::json::Json;
use crate::testing::SequentialIds;
use proptest::prelude::*;

fn request() -> DecisionRequest {
    let draft = DecisionDraft {
        model: Json::parse("\"acme/judge\"").ok(),
        questions: Json::parse(r#"{"q":{"type":"noul","instructions":"?"}}"#).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap()
}

fn key_of(request: &DecisionRequest) -> CallKey {
    key(WorkspaceId::from_uuid(SequentialIds::uuid(1)), &"acme/judge".parse().unwrap(), request)
}

fn with_inquiry(change: impl FnOnce(&mut Inquiry)) -> DecisionRequest {
    let mut request = request();
    let mut inquiry = (*request.inquiry).clone();
    change(&mut inquiry);
    request.inquiry = Arc::new(inquiry);
    request
}

fn asset(name: &str, data: &[u8], media_type: Option<&str>) -> Asset {
    let entry = Json::parse(r#"{"part":"p"}"#).unwrap();
    Asset { name: name.to_owned(), entry, data: Arc::from(data), media_type: media_type.map(str::to_owned) }
}

fn choice(boolean: Option<bool>) -> DecisionRequest {
    let options = vec![ChoiceOption { boolean, ..ChoiceOption::new("true", None) }, ChoiceOption::new("other", None)];
    let question = Question::canonical("q", None, QuestionKind::Choice { options }, "q").unwrap();
    with_inquiry(|inquiry| inquiry.questions = Questions::of_typed(vec![question]))
}

#[test]
fn everything_that_reaches_a_provider_or_chooses_one_tells_requests_apart() {
    let images = |text: &str| Attachments::Images(Json::parse(text).unwrap());
    let assets = |assets: &[Asset]| Attachments::Assets(assets.to_vec());
    let mut ordered = request();
    ordered.preferences.order = vec!["a".to_owned()];
    let mut ignoring = request();
    ignoring.preferences.ignore = vec!["a".to_owned()];
    let different = [
        request(),
        DecisionRequest { model: "judge".to_owned(), ..request() },
        DecisionRequest { fallback_models: vec!["x".to_owned()], ..request() },
        DecisionRequest { fallback_models: vec!["x".to_owned(), "y".to_owned()], ..request() },
        DecisionRequest { partial: true, ..request() },
        ordered,
        ignoring,
        with_inquiry(|inquiry| inquiry.state = None),
        with_inquiry(|inquiry| inquiry.state = Json::parse("\"s2\"").ok()),
        with_inquiry(|inquiry| inquiry.state_form = StateForm::OpenAiItems),
        with_inquiry(|inquiry| inquiry.attachments = Attachments::InState),
        with_inquiry(|inquiry| inquiry.attachments = images("[1]")),
        with_inquiry(|inquiry| inquiry.attachments = images("[2]")),
        with_inquiry(|inquiry| inquiry.attachments = assets(&[asset("a", b"1", None)])),
        with_inquiry(|inquiry| inquiry.attachments = assets(&[asset("a", b"2", None)])),
        with_inquiry(|inquiry| inquiry.attachments = assets(&[asset("b", b"1", None)])),
        with_inquiry(|inquiry| inquiry.attachments = assets(&[asset("a", b"1", Some(""))])),
        with_inquiry(|inquiry| inquiry.attachments = assets(&[asset("a", b"1", None), asset("a", b"1", None)])),
        choice(None),
        choice(Some(true)),
    ];
    let mut keys: Vec<CallKey> = different.iter().map(key_of).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), different.len());
    let one = &different[0];
    let elsewhere = key(WorkspaceId::from_uuid(SequentialIds::uuid(2)), &"acme/judge".parse().unwrap(), one);
    let of_another = key(WorkspaceId::from_uuid(SequentialIds::uuid(1)), &"acme/other".parse().unwrap(), one);
    assert!(elsewhere != key_of(one) && of_another != key_of(one));
}

#[test]
fn who_asks_does_not() {
    let other = DecisionRequest {
        session_id: Some("s".to_owned()),
        user: Some("u".to_owned()),
        trace: Json::parse("{}").ok(),
        ..request()
    };
    assert_eq!(key_of(&request()), key_of(&other));
}

proptest! {
    #[test]
    fn shares_sum_to_the_whole_and_differ_by_one_at_most(cost in 0..i64::MAX, of in 1_usize..300) {
        let shares: Vec<i64> = (0..of).map(|index| Share { index, of }.of(Usd::from_pico(cost)).pico()).collect();
        prop_assert_eq!(shares.iter().map(|share| i128::from(*share)).sum::<i128>(), i128::from(cost));
        prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
    }
}

fn routed() -> Routed {
    Routed { ends: Vec::new(), attempts: Arc::default() }
}

#[tokio::test]
async fn nothing_stays_in_flight_whatever_becomes_of_a_call() {
    let calls = InFlight::default();
    let stays = || Arc::new(crate::decision::StaysToTheEnd) as Arc<dyn CallerPresence>;
    calls.join([1; 32], Coalescing::Each, stays(), |_| async { routed() }).await;
    assert!(lock(&calls.0).is_empty(), "it ended");

    {
        let pending = calls.join([2; 32], Coalescing::Each, stays(), |_| std::future::pending());
        let never_polled = calls.join([3; 32], Coalescing::Each, stays(), |_| std::future::pending());
        tokio::select! {
            biased;
            _ = pending => panic!("it does not end"),
            () = std::future::ready(()) => {}
        }
        drop(never_polled);
        assert!(lock(&calls.0).is_empty(), "it was dropped by the one who waited");
    }

    let broken =
        std::panic::AssertUnwindSafe(calls.join([4; 32], Coalescing::Each, stays(), |_| async { panic!("a defect") }));
    assert!(broken.catch_unwind().await.is_err());
    assert!(lock(&calls.0).is_empty(), "it panicked");
}

#[tokio::test]
async fn nobody_joins_a_call_that_broke() {
    let calls = InFlight::default();
    let (one, first) = calls.seat([1; 32], |_| async { panic!("a defect") });
    let (two, second) = calls.seat([1; 32], |_| -> BoxFuture<'static, Routed> { panic!("it is in flight") });
    assert!(std::panic::AssertUnwindSafe(one).catch_unwind().await.is_err());
    assert!(lock(&calls.0).is_empty(), "though both still have their seats");
    drop((two, first, second));
}

#[tokio::test]
async fn presence_is_told_once_all_have_left_and_nobody_can_come_back() {
    let calls = InFlight::default();
    let (one, mut first) = calls.seat([1; 32], |_| std::future::pending());
    let (_two, mut second) = calls.seat([1; 32], |_| -> BoxFuture<'static, Routed> { panic!("it is in flight") });
    let everyone = Arc::clone(&first.everyone);
    let mut left = everyone.left();
    assert!((&mut left).now_or_never().is_none());
    first.leave();
    assert!((&mut left).now_or_never().is_none());
    second.leave();
    assert!(left.now_or_never().is_some());
    let (_three, third) = calls.seat([1; 32], |_| std::future::pending());
    assert!(!Arc::ptr_eq(&third.everyone, &everyone), "a call that all have left takes nobody in");
    drop((one, first, second));
    assert_eq!(lock(&calls.0).len(), 1, "the later call of the same key stays");
    drop(third);
}
