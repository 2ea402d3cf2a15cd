//! The calls of a provider: methods, detection, rejected members, contests, deadlines.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use adapters_provider::ProviderSettings;
use async_trait::async_trait;
use domain::decision::{ClientConnection, ProviderCall};
use domain::json::Json;
use domain::question::{Attachments, ProviderInput};
use domain::routing::{AttemptFailureKind, ChatMethod, ChatSettings, Wire};
use rstest::rstest;
use serde_json::{Value, json};
use wires::provider::ModelLocation;

use crate::model::{
    Does, Server, answer_to, by, call, choice_of, error, label_answer, names, of_tokens, saying, stated_answer, units,
    user_message,
};
use crate::support::{self, AMPLE};

const QUESTIONS: &str = r#"{"model":"m","state":"It smokes.","session_id":"private","questions":{
    "alone":{"type":"choice","criteria":{"only":null}},
    "refund":{"type":"noul","instructions":"Refund?"},
    "queue":{"type":"choice","criteria":{"billing":null,"hardware":null}},
    "heat":{"type":"score","criteria":["calm","annoyed","furious"]}}}"#;

fn likely(option: &str) -> f64 {
    match option {
        "Yes" => 0.9,
        "No" => 0.1,
        "hardware" => 0.7,
        "billing" => 0.3,
        "furious" => 0.5,
        "annoyed" | "calm" => 0.25,
        _ => 0.0,
    }
}

/// Returns true for a request for one label.
fn is_label(body: &Value) -> bool {
    body["logprobs"] == true
}

#[tokio::test]
async fn logprobs_makes_call_per_question() {
    let mut server = Server::of_model(likely).await;
    let answer = server.decide(&support::provider_input(QUESTIONS), by(ChatMethod::Logprobs)).await.unwrap();
    assert_eq!(names(&answer), ["alone", "refund", "queue", "heat"]);
    assert_eq!(
        answer.answers.text(),
        concat!(
            r#"{"alone":{"type":"choice","choice":"only","probabilities":{"only":1}},"#,
            r#""refund":{"type":"noul","noul":0.9,"metadata":{"method":"logprobs","label_mass":0.98,"calibrated":false}},"#,
            r#""queue":{"type":"choice","choice":"hardware","probabilities":{"billing":0.3,"hardware":0.7},"#,
            r#""metadata":{"method":"logprobs","label_mass":0.98,"calibrated":false}},"#,
            r#""heat":{"type":"score","score":1.25,"legend":{"0":"calm","1":"annoyed","2":"furious"},"#,
            r#""probabilities":{"0":0.25,"1":0.25,"2":0.5},"#,
            r#""metadata":{"method":"logprobs","label_mass":0.98,"calibrated":false}}}"#,
        )
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "what is alone is not asked");
    for body in &requests {
        assert_eq!(
            (&body["max_tokens"], &body["top_logprobs"], &body["temperature"]),
            (&json!(1), &json!(20), &json!(0))
        );
        assert_eq!(body["model"], "judge-1.0");
        assert!(!body.to_string().contains("private"), "{body}");
    }
}

#[tokio::test]
async fn structured_makes_single_call() {
    let mut server = Server::of_model(likely).await;
    let chat = ChatSettings { temperature_milli: 500, ..by(ChatMethod::Structured) };
    let answer = server.decide(&support::provider_input(QUESTIONS), chat).await.unwrap();
    assert_eq!(names(&answer), ["alone", "refund", "queue", "heat"]);
    assert_eq!(
        answer_to(&answer, "refund"),
        json!({"type":"noul","noul":0.9,"metadata":{"method":"structured","calibrated":false}})
    );
    assert_eq!(answer_to(&answer, "queue")["probabilities"], json!({"billing":0.2,"hardware":0.8}));
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0]["response_format"]["json_schema"]["strict"], true);
    assert!(requests[0]["logprobs"].is_null());
}

#[rstest]
#[case(21)]
#[case(40)]
#[case(255)]
#[tokio::test]
async fn logprobs_splits_options_above_label_count(#[case] options: u32) {
    // The winner is in the middle; the last option is a close second.
    let known = move |option: &str| {
        let place: u32 = option[1..].parse().unwrap();
        if place == options / 2 {
            8.0
        } else if place + 1 == options {
            6.0
        } else {
            1.0 / (1.0 + f64::from(place))
        }
    };
    let mut server = Server::of_model(known).await;
    let answer = server.decide(&choice_of(options as usize), by(ChatMethod::Logprobs)).await.unwrap();
    let answer = answer_to(&answer, "q");
    assert_eq!(answer["choice"], format!("n{:03}", options / 2));
    let units = units(&answer);
    assert_eq!(units.len(), options as usize);
    assert_eq!(units.iter().map(|(_, units)| units).sum::<u32>(), 10_000);
    let second =
        units.iter().filter(|(name, _)| answer["choice"] != name.as_str()).max_by_key(|(_, units)| *units).unwrap();
    assert_eq!(second.0, format!("n{:03}", options - 1));
    assert_eq!(server.requests().len(), options.div_ceil(20) as usize + 1);
}

/// If the server reports every label, the result is the model's own distribution.
#[tokio::test]
async fn contests_keep_distribution_of_model() {
    let known = |option: &str| 1.0 + option[1..].parse::<f64>().unwrap();
    let server = Server::start(move |_, body| {
        let offered = crate::model::offered(body);
        let sum: f64 = offered.iter().map(|(_, text)| known(text)).sum();
        let tokens: Vec<(String, f64)> =
            offered.iter().map(|(label, text)| (label.clone(), known(text) / sum)).collect();
        Does::Answer(200, of_tokens(&tokens))
    })
    .await;
    let answer = server.decide(&choice_of(64), by(ChatMethod::Logprobs)).await.unwrap();
    let answer = answer_to(&answer, "q");
    let sum: f64 = (1..=64).map(f64::from).sum();
    for (name, units) in units(&answer) {
        let expected = known(&name) / sum * 10_000.0;
        assert!((f64::from(units) - expected).abs() <= 1.0, "{name}: {units} for {expected}");
    }
}

#[tokio::test]
async fn logprobs_makes_at_most_eight_concurrent_calls() {
    let server = Server::of_model(|_| 1.0).await;
    server.decide(&choice_of(255), by(ChatMethod::Logprobs)).await.unwrap();
    let most = server.most_at_once.load(Ordering::SeqCst);
    assert!((2..=8).contains(&most), "{most}");
}

#[tokio::test]
async fn logprobs_fails_below_min_label_probability() {
    let server = Server::start(|_, _| {
        let tokens = [("Sorry", 0.6), ("A", 0.25), ("b", 0.1)].map(|(token, p)| (token.to_owned(), p));
        Does::Answer(200, of_tokens(&tokens))
    })
    .await;
    let provider_input = choice_of(2);
    let failure = server.decide(&provider_input, by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::NoUsableAnswer);
    assert_eq!(failure.detail, "the model was not answering the question");
    assert_eq!(failure.usage.unwrap().input_tokens, 100);
    let enough = ChatSettings { min_label_probability_milli: 350, ..by(ChatMethod::Logprobs) };
    let answer = server.decide(&provider_input, enough).await.unwrap();
    assert_eq!(answer_to(&answer, "q")["metadata"]["label_mass"], 0.35);
}

/// Makes two requests: the second one uses the detected method at once.
async fn probed(script: impl Fn(usize, &Value) -> Does + Send + Sync + 'static) -> (Vec<Value>, Vec<Value>, Value) {
    let mut server = Server::start(script).await;
    let provider_input = support::provider_input(QUESTIONS);
    let first = server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap();
    let before = server.requests();
    let second = server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(first.answers, second.answers);
    (before, server.requests(), answer_to(&first, "queue")["metadata"]["method"].clone())
}

#[tokio::test]
async fn auto_detects_server_with_logprobs() {
    let (first, second, method) = probed(|_, body| Does::Answer(200, label_answer(body, &likely))).await;
    assert_eq!((first.len(), second.len(), method), (3, 3, json!("logprobs")));
}

#[tokio::test]
async fn auto_answers_when_server_lacks_logprobs() {
    let (first, second, method) =
        probed(|_, body| Does::Answer(200, if is_label(body) { saying("A") } else { stated_answer(body) })).await;
    assert_eq!(first.iter().map(is_label).collect::<Vec<_>>(), [true, false], "the first alone is the probe");
    assert_eq!(second.iter().map(is_label).collect::<Vec<_>>(), [false]);
    assert_eq!(method, "structured");
}

#[tokio::test]
async fn auto_remembers_missing_logprobs_when_structured_fails() {
    let mut server = Server::start(|place, body| match place {
        0 => Does::Answer(200, saying("A")),
        1 => Does::Answer(500, json!({})),
        _ => Does::Answer(200, stated_answer(body)),
    })
    .await;
    let provider_input = support::provider_input(QUESTIONS);
    server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(server.requests().iter().map(is_label).collect::<Vec<_>>(), [false]);
}

#[rstest]
#[case(400, "Logprobs are not supported with this model")]
#[case(422, "top_logprobs: extra fields not permitted")]
#[case(403, "You may not request logprobs from this model")]
#[tokio::test]
async fn auto_detects_server_that_rejects_logprobs(#[case] status: u16, #[case] message: &'static str) {
    let (first, second, method) = probed(move |_, body| {
        if is_label(body) { Does::Answer(status, error(message)) } else { Does::Answer(200, stated_answer(body)) }
    })
    .await;
    assert_eq!((first.len(), second.len(), method), (2, 1, json!("structured")));
}

#[rstest]
#[case::by_its_token(r#"{"choices":[{"message":{"content":"<think>"},"logprobs":{"content":[{"token":"<think>","logprob":0,"top_logprobs":[{"token":"<think>","logprob":0}]}]}}]}"#)]
#[case::beside_its_text(r#"{"choices":[{"message":{"content":null,"reasoning_content":"Well"},"logprobs":{"content":[{"token":"Well","logprob":0,"top_logprobs":[{"token":"Well","logprob":0}]}]}}]}"#)]
#[tokio::test]
async fn auto_uses_structured_for_reasoning_model(#[case] thinking: &'static str) {
    let (first, second, method) = probed(move |_, body| {
        let answer = if is_label(body) { serde_json::from_str(thinking).unwrap() } else { stated_answer(body) };
        Does::Answer(200, answer)
    })
    .await;
    assert_eq!((first.len(), second.len(), method), (2, 1, json!("structured")));
}

#[tokio::test]
async fn auto_does_not_remember_unrelated_error() {
    // The error names another cause, and the other method does not help.
    let mut server = Server::start(|place, body| {
        if place < 2 {
            Does::Answer(400, error("Please do not write logprobs."))
        } else {
            Does::Answer(200, label_answer(body, &likely))
        }
    })
    .await;
    let provider_input = support::provider_input(QUESTIONS);
    let failure = server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::RejectedByProvider);
    assert_eq!(server.requests().len(), 2);
    let answer = server.decide(&provider_input, by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(answer_to(&answer, "queue")["metadata"]["method"], "logprobs");
}

#[rstest]
#[case::objecting(400, error("logprobs: no"), AttemptFailureKind::RejectedByProvider)]
#[case::silent(200, saying("A"), AttemptFailureKind::InvalidResponse)]
#[tokio::test]
async fn logprobs_method_does_not_fall_back(
    #[case] status: u16,
    #[case] answer: Value,
    #[case] kind: AttemptFailureKind,
) {
    let mut server = Server::start(move |_, _| Does::Answer(status, answer.clone())).await;
    let failure = server.decide(&choice_of(2), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!((failure.kind, failure.upstream_status), (kind, Some(status)));
    assert!(failure.detail.contains("log-probabilities"), "{}", failure.detail);
    assert_eq!(server.requests().len(), 1);
}

/// A server that rejects every optional member, one at a time.
fn strict(body: &Value) -> Option<Value> {
    let sent = |name: &str| !body[name].is_null();
    let named = ["reasoning_effort", "chat_template_kwargs", "temperature", "max_tokens", "response_format"];
    named.into_iter().find(|name| sent(name)).map(|name| error(&format!("Unsupported parameter: '{name}'.")))
}

#[rstest]
#[case(ChatMethod::Logprobs, 4, 3)]
#[case(ChatMethod::Structured, 5, 1)]
#[tokio::test]
async fn rejected_member_is_omitted_from_later_requests(
    #[case] method: ChatMethod,
    #[case] objections: usize,
    #[case] needed: usize,
) {
    let mut server = Server::start(|_, body| match strict(body) {
        Some(error) => Does::Answer(400, error),
        None if is_label(body) => Does::Answer(200, label_answer(body, &likely)),
        None => Does::Answer(200, stated_answer(body)),
    })
    .await;
    let provider_input = support::provider_input(QUESTIONS);
    let first = server.decide(&provider_input, by(method)).await.unwrap();
    assert_eq!(server.requests().len(), objections + needed, "the others go by what the first has taught");
    let second = server.decide(&provider_input, by(method)).await.unwrap();
    assert_eq!(first.answers, second.answers);
    let requests = server.requests();
    assert_eq!(requests.len(), needed);
    assert!(!requests[0]["max_completion_tokens"].is_null(), "its other name");
}

#[tokio::test]
async fn label_request_always_has_token_limit() {
    let mut server = Server::start(|_, body| {
        let named = if body["max_tokens"].is_null() { "max_completion_tokens" } else { "max_tokens" };
        Does::Answer(400, error(named))
    })
    .await;
    let failure = server.decide(&choice_of(2), by(ChatMethod::Logprobs)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::RejectedByProvider);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn refusal_of_single_question_is_returned() {
    let server = Server::start(|_, body| {
        let refused = user_message(body).contains("Refund?");
        let refusal = json!({"choices":[{"message":{"content":null,"refusal":"No."}}],"usage":{"prompt_tokens":1,"completion_tokens":1}});
        Does::Answer(200, if refused { refusal } else { label_answer(body, &likely) })
    })
    .await;
    let answer = server.decide(&support::provider_input(QUESTIONS), by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(answer_to(&answer, "refund"), json!({"type":"refusal"}));
    assert_eq!(answer_to(&answer, "queue")["choice"], "hardware");
}

#[tokio::test]
async fn structured_refusal_applies_to_every_question() {
    let server = Server::start(|_, _| {
        let filtered = json!({"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]});
        Does::Answer(200, filtered)
    })
    .await;
    let answer = server.decide(&support::provider_input(QUESTIONS), by(ChatMethod::Structured)).await.unwrap();
    assert_eq!(names(&answer), ["alone", "refund", "queue", "heat"]);
    assert_eq!(answer_to(&answer, "heat"), json!({"type":"refusal"}));
    assert_eq!(answer_to(&answer, "alone")["choice"], "only");
}

#[rstest]
#[case::opaque(r#"{"model":"m","state":"s","questions":"What is it?"}"#)]
#[case::box_question(r#"{"model":"m","state":"s","questions":{"q":{"type":"box","instructions":"?"}}}"#)]
#[case::images(
    r#"{"model":"m","state":"s","images":["data:image/png;base64,AA=="],"questions":{"q":{"type":"noul","instructions":"?"}}}"#
)]
#[tokio::test]
async fn decide_rejects_unsupported_input_before_call(#[case] body: &str) {
    let mut server = Server::of_model(likely).await;
    let failure = server.decide(&support::provider_input(body), by(ChatMethod::Auto)).await.unwrap_err();
    assert_eq!((failure.kind, failure.sent_bytes, failure.usage), (AttemptFailureKind::RejectedByProvider, 0, None));
    assert!(server.requests().is_empty());
}

#[test]
fn decide_rejects_images() {
    let body = r#"{"model":"m","state":"s","images":["data:image/png;base64,AA=="],"questions":{"q":{"type":"noul","instructions":"?"}}}"#;
    assert_ne!(support::provider_input(body).attachments, Attachments::None);
}

#[tokio::test]
async fn single_outcome_is_answered_without_call() {
    let mut server = Server::of_model(likely).await;
    let answer = server.decide(&choice_of(1), by(ChatMethod::Auto)).await.unwrap();
    assert_eq!(answer_to(&answer, "q"), json!({"type":"choice","choice":"n000","probabilities":{"n000":1}}));
    assert_eq!((answer.sent_bytes, answer.usage.unwrap().input_tokens), (0, 0));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn calls_share_deadline_of_attempt() {
    let server = Server::start(|place, body| match place {
        5 => Does::Stall,
        _ => Does::Answer(200, label_answer(body, &|_| 1.0)),
    })
    .await;
    let began = tokio::time::Instant::now();
    let patience = Duration::from_secs(1);
    let failure = server.decide_within(&choice_of(255), by(ChatMethod::Logprobs), patience).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(15));
    assert_eq!(failure.usage, None, "the call that stalled may be billed");
    assert!(failure.sent_bytes > 0);
}

struct LeavesSoon;

#[async_trait]
impl ClientConnection for LeavesSoon {
    async fn disconnected(&self) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn client_disconnect_ends_all_calls() {
    let server = Server::start(|_, _| Does::Stall).await;
    let settings = ProviderSettings::new("acme".parse().unwrap(), server.base_url(), Wire::ChatCompletions);
    let provider = support::provider_of(&support::settings(), Wire::ChatCompletions, settings);
    let call = ProviderCall { client: Arc::new(LeavesSoon), ..call(&choice_of(2), by(ChatMethod::Auto), AMPLE) };
    let failure = provider.decide(call).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ClientDisconnected);
}

#[tokio::test]
async fn model_name_is_sent_in_path() {
    let mut server = Server::of_model(likely).await;
    let settings = ProviderSettings {
        path: "models/{model}/chat".to_owned(),
        model_location: ModelLocation::Path,
        ..ProviderSettings::new("acme".parse().unwrap(), server.base_url(), Wire::ChatCompletions)
    };
    let provider = support::provider_of(&support::settings(), Wire::ChatCompletions, settings);
    provider.decide(call(&support::provider_input(QUESTIONS), by(ChatMethod::Structured), AMPLE)).await.unwrap();
    assert!(server.requests()[0]["model"].is_null());
}

#[tokio::test]
async fn properties_are_remembered_per_model() {
    let mut server = Server::start(|_, body| {
        let tells = body["model"] == "teller";
        let answer = match (is_label(body), tells) {
            (true, true) => label_answer(body, &likely),
            (true, false) => saying("A"),
            (false, _) => stated_answer(body),
        };
        Does::Answer(200, answer)
    })
    .await;
    let settings = ProviderSettings::new("acme".parse().unwrap(), server.base_url(), Wire::ChatCompletions);
    let provider = support::provider_of(&support::settings(), Wire::ChatCompletions, settings);
    let provider_input: Arc<ProviderInput> = support::provider_input(QUESTIONS);
    let mut methods = Vec::new();
    for model in ["silent", "teller", "silent"] {
        let mut call = call(&provider_input, by(ChatMethod::Auto), AMPLE);
        Arc::make_mut(&mut call.endpoint).upstream_model = model.into();
        let answer = provider.decide(call).await.unwrap();
        methods.push((answer_to(&answer, "queue")["metadata"]["method"].clone(), server.requests().len()));
    }
    assert_eq!(methods, [(json!("structured"), 2), (json!("logprobs"), 3), (json!("structured"), 1)]);
}

#[tokio::test]
async fn failure_contains_no_vendor_text() {
    for (status, body) in [
        (400, error("the secret of Acme: temperature")),
        (500, error("the secret of Acme")),
        (200, json!({"error": {"code": 500, "message": "the secret of Acme"}})),
        (200, saying("the secret of Acme")),
    ] {
        let server = Server::start(move |_, _| Does::Answer(status, body.clone())).await;
        let failure = server.decide(&choice_of(2), by(ChatMethod::Structured)).await.unwrap_err();
        assert!(!format!("{failure:?} {failure}").contains("Acme"), "{failure:?}");
    }
    assert!(!format!("{:?}", Json::string("Acme")).contains("Acme"));
}
