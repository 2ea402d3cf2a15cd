use super::*;
use crate::decision::{Asset, ChoiceOption, DecisionDraft, Inquiry, Question, StateForm};
use crate::guardrail::{Guardrail, GuardrailName, GuardrailRules};
use crate::ids::GuardrailId;
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
    key(WorkspaceId::from_uuid(SequentialIds::uuid(1)), None, (&"acme/judge".parse().unwrap(), false), request)
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
    let workspace = |number| WorkspaceId::from_uuid(SequentialIds::uuid(number));
    let (judge, other) = ("acme/judge".parse().unwrap(), "acme/other".parse().unwrap());
    assert_ne!(key(workspace(2), None, (&judge, false), one), key_of(one));
    assert_ne!(key(workspace(1), None, (&other, false), one), key_of(one));
    assert_ne!(key(workspace(1), None, (&judge, true), one), key_of(one), "it is charged otherwise");
}

#[test]
fn guardrails_and_their_versions_tell_requests_apart() {
    let guardrail = |number: u64, version: u32| Guardrail {
        id: GuardrailId::from_uuid(SequentialIds::uuid(number)),
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        name: GuardrailName::try_new("g").unwrap(),
        budget: None,
        rules: GuardrailRules::default(),
        version,
        created_at: chrono::DateTime::UNIX_EPOCH,
        updated_at: None,
    };
    let under = |guardrails: &[Guardrail]| {
        let policy = Policy::compile(guardrails.to_vec()).unwrap();
        let workspace = WorkspaceId::from_uuid(SequentialIds::uuid(1));
        key(workspace, Some(&policy), (&"acme/judge".parse().unwrap(), false), &request())
    };
    let one = guardrail(5, 1);
    let mut keys = vec![key_of(&request())];
    keys.push(under(std::slice::from_ref(&one)));
    keys.push(under(&[guardrail(5, 2)]));
    keys.push(under(&[guardrail(6, 1)]));
    keys.push(under(&[one.clone(), guardrail(6, 1)]));
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 5);
    assert_eq!(under(std::slice::from_ref(&one)), under(&[one]));
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

/// Nobody that is limited.
fn guest() -> Guest {
    Guest { funds: None, needed: Usd::ZERO }
}

/// A seat at the call in flight, or what it takes.
fn join(calls: &InFlight, guest: Guest) -> Result<(Shared<Call>, Seat), Usd> {
    let seated = calls.seat([1; 32], guest, |_| -> BoxFuture<'static, Routed> { panic!("it is in flight") });
    seated.map_err(|(needed, _)| needed)
}

#[tokio::test]
async fn nothing_stays_in_flight_whatever_becomes_of_a_call() {
    let calls = InFlight::default();
    let stays = &(Arc::new(crate::decision::StaysToTheEnd) as Arc<dyn CallerPresence>);
    calls.join([1; 32], Coalescing::Each, stays, guest(), |_| async { routed() }).await;
    assert!(lock(&calls.0).is_empty(), "it ended");

    {
        let pending = calls.join([2; 32], Coalescing::Each, stays, guest(), |_| std::future::pending());
        let never_polled = calls.join([3; 32], Coalescing::Each, stays, guest(), |_| std::future::pending());
        tokio::select! {
            biased;
            _ = pending => panic!("it does not end"),
            () = std::future::ready(()) => {}
        }
        drop(never_polled);
        assert!(lock(&calls.0).is_empty(), "it was dropped by the one who waited");
    }

    let broken = calls.join([4; 32], Coalescing::Each, stays, guest(), |_| async { panic!("a defect") });
    let broken = std::panic::AssertUnwindSafe(broken);
    assert!(broken.catch_unwind().await.is_err());
    assert!(lock(&calls.0).is_empty(), "it panicked");
}

#[tokio::test]
async fn nobody_joins_a_call_that_broke() {
    let calls = InFlight::default();
    let (one, first) = calls.seat([1; 32], guest(), |_| async { panic!("a defect") }).ok().unwrap();
    let (two, second) = join(&calls, guest()).unwrap();
    assert!(std::panic::AssertUnwindSafe(one).catch_unwind().await.is_err());
    assert!(lock(&calls.0).is_empty(), "though both still have their seats");
    drop((two, first, second));
}

#[tokio::test]
async fn presence_is_told_once_all_have_left_and_nobody_can_come_back() {
    let calls = InFlight::default();
    let (one, mut first) = calls.seat([1; 32], guest(), |_| std::future::pending()).ok().unwrap();
    let (_two, mut second) = join(&calls, guest()).unwrap();
    let everyone = Arc::clone(&first.everyone);
    let mut left = everyone.left();
    assert!((&mut left).now_or_never().is_none());
    first.leave();
    assert!((&mut left).now_or_never().is_none());
    second.leave();
    assert!(left.now_or_never().is_some());
    let (_three, third) = calls.seat([1; 32], guest(), |_| std::future::pending()).ok().unwrap();
    assert!(!Arc::ptr_eq(&third.everyone, &everyone), "a call that all have left takes nobody in");
    drop((one, first, second));
    assert_eq!(lock(&calls.0).len(), 1, "the later call of the same key stays");
    drop(third);
}

#[tokio::test]
async fn who_is_put_out_has_no_share_even_where_the_call_ends_at_once() {
    let payer = crate::budget::Payer {
        workspace_id: WorkspaceId::from_uuid(SequentialIds::uuid(1)),
        api_key: crate::api_key::ApiKeyHash::from_bytes([1; 32]),
        guardrails: Vec::new(),
    };
    let id = crate::ids::DecisionId::from_uuid(SequentialIds::uuid(2));
    let request_id = crate::ids::RequestId::from_uuid(SequentialIds::uuid(3));
    let poor = Arc::new(Funds::new(id, payer, request_id, "acme/judge".to_owned()));
    for leaves in [false, true] {
        let calls = InFlight::default();
        let cannot_pay = [Arc::clone(&poor)];
        let run = |everyone: Arc<Everyone>| async move {
            // Whoever is asked to go on without one ends in the same breath.
            assert!(leaves || everyone.go_on_without(&cannot_pay));
            if leaves {
                tokio::task::yield_now().await;
                assert!(everyone.go_on_without(&cannot_pay));
            }
            routed()
        };
        let (rich_call, rich) = calls.seat([1; 32], guest(), run).ok().unwrap();
        let caller: Arc<dyn CallerPresence> =
            if leaves { Arc::new(HasLeft) } else { Arc::new(crate::decision::StaysToTheEnd) };
        let never = |_| -> BoxFuture<'static, Routed> { panic!("it is in flight") };
        let guest = Guest { funds: Some(Arc::clone(&poor)), needed: Usd::ZERO };
        let joined = calls.join([1; 32], Coalescing::Shared, &caller, guest, never).await;
        assert!(matches!(joined, Joined::PutOut), "it would be charged for what others pay");
        let (_, of) = rich_call.await;
        assert_eq!((of, rich.everyone.collect()), (1, 0), "the shares are those of who stayed");
    }
}

struct HasLeft;

#[async_trait]
impl CallerPresence for HasLeft {
    async fn left(&self) {}
}
