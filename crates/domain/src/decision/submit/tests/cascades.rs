//! Presets with stages: what each is asked, what is held and charged, and what becomes of its answers.

use super::recording_ledger::{LedgerCall, RecordingLedger, key, setup as limited, usd};
use super::*;
use crate::preset::PresetConfig;
use crate::usage::QuestionVerdict;

const QUESTIONS: &str =
    r#""questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"noul","instructions":"Really?"}}"#;

/// Two stages with a threshold of 0.8 each.
fn staged(otherwise: &str) -> DecisionRequest {
    let stages = r#""stages":[{"model":"acme/small","accept":{"*":0.8}},{"model":"acme/large","accept":{"*":0.8}}]"#;
    let text = format!(r#"{{{stages},"otherwise":"{otherwise}",{QUESTIONS}}}"#);
    let config = PresetConfig::read(&Json::parse(&text).unwrap()).unwrap();
    DecisionRequest {
        model: config.models[0].clone(),
        fallback_models: config.models[1..].to_vec(),
        provider_input: Arc::new(ProviderInput::new(config.questions, Some(Json::string("s")))),
        cascade: config.cascade,
        ..request("acme/small")
    }
}

fn setup(outcomes: impl IntoIterator<Item = Outcome>, otherwise: &str) -> Setup {
    Setup {
        rows: vec![row("acme/small"), row("acme/large")],
        endpoints: vec![endpoint("acme/small", "one", "s"), endpoint("acme/large", "two", "l")],
        request: staged(otherwise),
        ..Setup::new(outcomes)
    }
}

/// Returns an answer with these probabilities of yes, for ten tokens.
#[expect(clippy::unnecessary_wraps, reason = "as the port returns it")]
fn said(answers: &[(&str, &str)]) -> Outcome {
    let noul = |number: &str| Json::parse(&format!(r#"{{"type":"noul","noul":{number}}}"#)).unwrap();
    let answers: Vec<(&str, Json)> = answers.iter().map(|(name, number)| (*name, noul(number))).collect();
    let usage = Some(ReportedUsage { input_tokens: 10, output_tokens: 0 });
    let answers = Json::object(answers.iter().map(|(name, json)| (*name, json.text())));
    Ok(ProviderAnswer { answers, usage, sent_bytes: 400 })
}

fn asked(call: &ProviderCall) -> Vec<&str> {
    call.provider_input
        .questions
        .typed
        .as_deref()
        .into_iter()
        .flatten()
        .map(|question| question.name.as_str())
        .collect()
}

fn outcomes(decision: &Decision) -> Vec<(&str, QuestionVerdict, usize, &str)> {
    let all = decision.outcomes.all().iter();
    all.map(|of| (of.question.as_str(), of.verdict, of.stage, of.model.as_str())).collect()
}

use QuestionVerdict::{Abstained, Accepted, Escalated};

#[tokio::test]
async fn accepted_answers_end_the_request_at_the_first_stage() {
    let run = setup([said(&[("a", "0.9"), ("b", "0.2")])], "answer").run().await;
    let decision = run.result.as_ref().unwrap();
    assert_eq!(outcomes(decision), [("a", Accepted, 1, "acme/small"), ("b", Accepted, 1, "acme/small")]);
    assert_eq!((decision.cost.to_string().as_str(), decision.model.as_str()), ("0.00000042", "acme/small"));
    let recorded = run.records[0].outcomes.as_ref().unwrap().text();
    assert_eq!(Some(recorded), decision.outcomes.json().map(Json::text));
    assert!(Json::parse(recorded).is_ok(), "{recorded}");
    assert!(
        recorded.starts_with(r#"{"a":{"outcome":"accepted","stage":1,"model":"acme/small","threshold":0.8}"#),
        "{recorded}"
    );
}

#[tokio::test]
async fn question_that_is_not_accepted_goes_to_the_next_stage() {
    let first = || said(&[("a", "0.9"), ("b", "0.6")]);
    let run = setup([first(), said(&[("a", "0.1"), ("b", "0.95")])], "abstain").run().await;
    assert_eq!(run.upstreams(), ["s", "l"]);
    assert_eq!(asked(&run.calls[1]), ["a", "b"], "the second endpoint answers all questions together");
    let decision = run.result.unwrap();
    assert_eq!(outcomes(&decision), [("a", Accepted, 1, "acme/small"), ("b", Accepted, 2, "acme/large")]);
    let answers = decision.answers.json().text();
    assert!(answers.contains(r#""a":{"type":"noul","noul":0.9}"#), "an accepted answer stays: {answers}");
    assert!(answers.contains(r#""b":{"type":"noul","noul":0.95}"#), "{answers}");
    assert_eq!((decision.cost.to_string().as_str(), decision.attempts.len()), ("0.00000084", 2), "both calls");
    assert_eq!(run.records[0].cost, decision.cost);
    assert_eq!((decision.model.as_str(), run.records[0].model.as_str()), ("acme/large", "acme/large"));
    assert_eq!((decision.provider.as_str(), run.records[0].provider.as_str()), ("ONE, TWO", "one,two"));

    let mut independent = setup([first(), said(&[("b", "0.95")])], "abstain");
    independent.endpoints[1].independent_questions = true;
    let run = independent.run().await;
    assert_eq!(asked(&run.calls[1]), ["b"], "only the open question");
    assert_eq!(run.result.unwrap().outcomes.all().len(), 2);
}

#[rstest]
#[case("answer", Escalated)]
#[case("abstain", Abstained)]
#[tokio::test]
async fn last_answer_stays_when_no_stage_accepts_one(#[case] otherwise: &str, #[case] verdict: QuestionVerdict) {
    let doubtful = || said(&[("a", "0.9"), ("b", "0.6")]);
    let run = setup([doubtful(), said(&[("a", "0.5"), ("b", "0.7")])], otherwise).run().await;
    let decision = run.result.unwrap();
    assert_eq!(outcomes(&decision), [("a", Accepted, 1, "acme/small"), ("b", verdict, 2, "acme/large")]);
    assert!(decision.answers.json().text().contains(r#""b":{"type":"noul","noul":0.7}"#));

    // A later stage that fails leaves the answer of the first.
    let run = setup([doubtful(), failure(InvalidResponse)], otherwise).run().await;
    let decision = run.result.unwrap();
    assert_eq!(outcomes(&decision)[1], ("b", verdict, 1, "acme/small"));
    assert_eq!(run.records[0].outcome, UsageOutcome::Completed);
    assert_eq!(run.records[0].attempts.len(), 2, "the failed attempt is recorded");
}

#[rstest]
#[case::refusal(r#"{"type":"refusal"}"#)]
#[case::unanswered(r#"{"type":"error","error":"timed_out"}"#)]
#[tokio::test]
async fn answer_without_decision_leaves_the_earlier_one(#[case] undecided: &str) {
    let answers = Json::object([("a", r#"{"type":"noul","noul":0.9}"#), ("b", undecided)]);
    let of_large = || Ok(ProviderAnswer { answers: answers.clone(), usage: None, sent_bytes: 400 });
    let run = setup([said(&[("a", "0.9"), ("b", "0.6")]), of_large()], "answer").run().await;
    let decision = run.result.unwrap();
    assert_eq!(outcomes(&decision)[1], ("b", Escalated, 1, "acme/small"));
    assert!(decision.answers.json().text().contains(r#""b":{"type":"noul","noul":0.6}"#));
    assert_eq!(run.records[0].model.as_str(), "acme/small", "its answers are returned");

    // A first answer without a decision is replaced.
    let run = setup([of_large(), said(&[("a", "0.9"), ("b", "0.6")])], "answer").run().await;
    assert_eq!(outcomes(&run.result.unwrap())[1], ("b", Escalated, 2, "acme/large"));
}

#[tokio::test]
async fn replaced_call_of_a_stage_asks_only_open_questions() {
    let answers = [said(&[("a", "0.9"), ("b", "0.6")]), failure(InvalidResponse), said(&[("b", "0.95")])];
    let mut setup = setup(answers, "abstain");
    let mut other = endpoint("acme/large", "three", "m");
    (other.independent_questions, other.own_limits.max_questions) = (true, Some(1));
    setup.endpoints.push(other);
    let run = setup.run().await;
    assert_eq!(run.upstreams(), ["s", "l", "m"]);
    assert_eq!(asked(&run.calls[2]), ["b"]);
    assert_eq!(outcomes(&run.result.unwrap())[1], ("b", Accepted, 2, "acme/large"));
}

#[rstest]
#[case::simulated(AttemptFailureKind::Simulated(ErrorKind::ProviderFailure))]
#[case::memory(AttemptFailureKind::MemoryExhausted)]
#[tokio::test]
async fn failure_that_ends_a_request_ends_the_stages(#[case] kind: AttemptFailureKind) {
    let run = setup([failure(kind)], "answer").run().await;
    assert_eq!((run.upstreams(), run.result.is_err()), (vec!["s"], true));
}

#[tokio::test]
async fn stage_that_fails_is_skipped() {
    let run = setup([failure(TimedOut), said(&[("a", "0.9"), ("b", "0.9")])], "abstain").run().await;
    assert_eq!(outcomes(&run.result.unwrap()), [("a", Accepted, 2, "acme/large"), ("b", Accepted, 2, "acme/large")]);
    let run = setup([failure(TimedOut), failure(Overloaded)], "abstain").run().await;
    assert_eq!((run.kind(), run.records[0].outcome), (ErrorKind::TimedOut, UsageOutcome::Failed));
    assert_eq!(run.records[0].outcomes, None);

    // Without an endpoint, a stage cannot be asked.
    let mut setup = setup([said(&[("a", "0.9"), ("b", "0.6")])], "abstain");
    setup.endpoints.truncate(1);
    let decision = setup.run().await.result.unwrap();
    assert_eq!(outcomes(&decision)[1], ("b", Abstained, 1, "acme/small"));
}

#[tokio::test]
async fn stage_whose_model_left_the_catalogue_is_skipped() {
    let both = || said(&[("a", "0.9"), ("b", "0.6")]);
    for (row, stage, model) in [(0, 1, "acme/small"), (1, 2, "acme/large")] {
        let mut setup = setup([both()], "answer");
        setup.rows = vec![setup.rows.swap_remove(row)];
        let decision = setup.run().await.result.unwrap();
        assert_eq!(outcomes(&decision), [("a", Accepted, stage, model), ("b", Escalated, stage, model)]);
    }
    let mut setup = setup([], "answer");
    setup.rows = vec![row("acme/other")];
    assert_eq!(setup.run().await.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn stage_that_cannot_begin_before_the_deadline_is_skipped() {
    let mut setup = setup([said(&[("a", "0.9"), ("b", "0.6")])], "answer");
    setup.takes = Duration::from_secs(25);
    let run = setup.run().await;
    assert_eq!(outcomes(&run.result.unwrap())[1], ("b", Escalated, 1, "acme/small"));
}

#[tokio::test]
async fn disconnected_client_gets_no_answer_of_an_earlier_stage() {
    let run = setup([said(&[("a", "0.9"), ("b", "0.6")]), failure(ClientDisconnected)], "answer").run().await;
    assert_eq!(run.kind(), ErrorKind::ClientDisconnected);
    assert_eq!((run.records[0].outcome, run.records[0].attempts.len()), (UsageOutcome::Cancelled, 2));
    assert_eq!(run.records[0].cost.to_string(), "0.00000042", "the first stage is charged");
}

#[tokio::test(start_paused = true)]
async fn bounds_of_all_stages_are_held_before_the_first_call() {
    let ledger = RecordingLedger::new(None, &[Some(1_000_000), Some(1)]).await;
    let mut gateway = limited(&ledger);
    gateway.rows = vec![row("acme/small"), row("acme/large")];
    gateway.endpoints = vec![endpoint("acme/small", "one", "s"), endpoint("acme/large", "two", "l")];
    for endpoint in &mut gateway.endpoints {
        endpoint.prices = Some(TokenPrices { prompt: price("1e-12"), completion: price("0") });
    }
    let gateway = gateway.build();
    let request = staged("answer");
    let each = i64::try_from(request.provider_input.len_bytes()).unwrap() + 20;
    let pending = gateway.send_with(key(1), request.clone()).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 2 * each), "before the first stage answers");
    assert_eq!(ledger.calls(), [LedgerCall::Held(usd(2 * each))]);
    gateway.finish(0, said(&[("a", "0.9"), ("b", "0.6")])).await;
    assert_eq!(ledger.spent_and_held(1).await, (0, 2 * each), "before the second stage answers");
    gateway.finish(1, said(&[("a", "0.9"), ("b", "0.9")])).await;
    let decision = pending.end().await.unwrap();
    assert_eq!((decision.cost, ledger.spent_and_held(1).await), (usd(20), (20, 0)));
    let begun: Vec<_> = ledger.hold_requests().iter().map(|held| (held.begun, held.attempts.len())).collect();
    assert_eq!(begun, [(1, 2)], "a crash charges the first stage alone");
    let calls = [LedgerCall::Held(usd(2 * each)), LedgerCall::Begun(usd(each)), LedgerCall::Charged(usd(20))];
    assert_eq!(ledger.calls(), calls, "no increase");
    let rejected = gateway.send_with(key(2), request).await.end().await.unwrap_err();
    assert_eq!(rejected.kind(), ErrorKind::InsufficientCredits);
    assert_eq!(gateway.upstreams().len(), 2, "nothing is sent without the money of all stages");
}

/// A crash charges what the journal has: a fallback may not use the room of a sub-request that is not asked without an
/// entry.
#[tokio::test(start_paused = true)]
async fn fallback_of_a_later_stage_is_recorded_although_room_is_left() {
    let ledger = RecordingLedger::new(None, &[Some(1_000_000)]).await;
    let mut gateway = limited(&ledger);
    gateway.rows = vec![row("acme/small"), row("acme/large")];
    gateway.endpoints = vec![
        endpoint("acme/small", "one", "s"),
        endpoint("acme/large", "two", "l"),
        endpoint("acme/large", "three", "m"),
    ];
    for (endpoint, prompt) in gateway.endpoints.iter_mut().zip(["1e-12", "1e-12", "3e-12"]) {
        endpoint.prices = Some(TokenPrices { prompt: price(prompt), completion: price("0") });
        (endpoint.independent_questions, endpoint.own_limits.max_questions) = (true, Some(1));
    }
    gateway.endpoints[0].own_limits.max_questions = None;
    let gateway = gateway.build();
    let pending = gateway.send_with(key(1), staged("answer")).await;
    gateway.finish(0, said(&[("a", "0.9"), ("b", "0.6")])).await;
    gateway.finish(1, failure(Overloaded)).await;
    gateway.finish(2, said(&[("b", "0.9")])).await;
    assert_eq!(outcomes(&pending.end().await.unwrap())[1], ("b", Accepted, 2, "acme/large"));
    assert_eq!(gateway.upstreams(), ["s", "l", "m"]);
    let calls = ledger.calls();
    assert!(
        matches!(&calls[..], [LedgerCall::Held(_), LedgerCall::Begun(_), LedgerCall::Increased(_), _]),
        "{calls:?}"
    );
}
