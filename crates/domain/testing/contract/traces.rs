//! Cases of [`MessageEncoder`].

use super::usage_record;
use crate::decision::TraceContent;
use crate::ids::DecisionId;
use crate::json::Json;
use crate::observability::MessageEncoder;
use crate::question::{ProviderInput, Questions};
use crate::testing::SequentialIds;
use crate::usage::{RequestLabels, UsageRecord};

suite! {
    /// Every case of the port's contract.
    trace_encoder_cases as trace_encoder_contract over Encoder {
        trace_is_the_same_when_encoded_again,
        private_trace_is_that_of_a_request_without_labels,
        trace_has_input_answers_and_labels,
        trace_has_labels_as_filters_left_them,
    }
}

type Encoder = Box<dyn MessageEncoder>;

const WORDS: [&str; 5] = ["the session", "the user", "the name", "the span", "the team"];

fn labelled() -> UsageRecord {
    let trace =
        Json::parse(r#"{"trace_id":"the id","trace_name":"the name","span_name":"the span","team":"the team"}"#);
    UsageRecord {
        session_id: Some("the session".to_owned()),
        user: Some("the user".to_owned()),
        trace: Some(trace.unwrap()),
        ..usage_record(1, 7)
    }
}

fn provider_input() -> ProviderInput {
    let questions = Questions { json: Json::string("the question"), typed: None };
    ProviderInput::new(questions, Some(Json::string("the state")))
}

async fn trace_is_the_same_when_encoded_again(encoder: &Encoder) {
    let input = provider_input();
    let exchange = TraceContent { provider_input: &input, answers: None, outcomes: None, redacted_labels: None };
    let encode = |record: &UsageRecord| (encoder.encode_private(record), encoder.encode(record, &exchange));
    assert_eq!(encode(&labelled()), encode(&labelled()));
    let other = UsageRecord { id: DecisionId::from_uuid(SequentialIds::uuid(70)), ..labelled() };
    assert_ne!(encode(&other).0, encode(&labelled()).0);
    assert_ne!(encode(&other).1, encode(&labelled()).1);
}

async fn private_trace_is_that_of_a_request_without_labels(encoder: &Encoder) {
    let bare = UsageRecord { session_id: None, user: None, trace: None, ..labelled() };
    assert_eq!(encoder.encode_private(&labelled()), encoder.encode_private(&bare), "not even in an id");
}

async fn trace_has_input_answers_and_labels(encoder: &Encoder) {
    let (input, answers) = (provider_input(), Json::string("the answer"));
    let exchange =
        TraceContent { provider_input: &input, answers: Some(&answers), outcomes: None, redacted_labels: None };
    let trace = encoder.encode(&labelled(), &exchange);
    for word in WORDS.into_iter().chain(["the question", "the state", "the answer"]) {
        assert!(trace.text().contains(word), "{word} in {}", trace.text());
    }
}

async fn trace_has_labels_as_filters_left_them(encoder: &Encoder) {
    let input = provider_input();
    let labels = RequestLabels { session_id: Some("[EMAIL]".to_owned()), ..RequestLabels::default() };
    let exchange =
        TraceContent { provider_input: &input, answers: None, outcomes: None, redacted_labels: Some(&labels) };
    let trace = encoder.encode(&labelled(), &exchange);
    assert!(trace.text().contains("[EMAIL]"), "{}", trace.text());
    for word in WORDS {
        assert!(!trace.text().contains(word), "{word} in {}", trace.text());
    }
}
