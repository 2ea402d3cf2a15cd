//! Parsing of untrusted model output.

use adapters_provider::chat_completions::structured;
use domain::question::Question;
use proptest::prelude::*;
use rstest::rstest;
use wires::chat::provider_response as response;
use wires::provider::MalformedAnswer;

use crate::support;

fn questions() -> Vec<Question> {
    let body = r#"{"model":"m","state":"s","questions":{"a":{"type":"noul","instructions":"?"},"b":{"type":"choice","criteria":{"x":null,"y":null}}}}"#;
    support::provider_input(body).questions.typed.as_deref().unwrap().to_vec()
}

const STATED: &str = r#"{"q0":0.25,"q1":{"o0":1,"o1":3}}"#;

#[rstest]
#[case::plain(STATED.to_owned())]
#[case::fenced(format!("```json\n{STATED}\n```"))]
#[case::bare_fence(format!("```\n{STATED}```\n"))]
#[case::in_prose(format!("Here it is:\n{STATED}\nI hope that helps."))]
#[case::behind_thoughts(format!("<think>It is {{maybe}} x.</think>\n{STATED}"))]
#[case::more_than_was_asked(r#"{"why":"because","q1":{"o1":3.0,"o0":1e0},"q0":0.25}"#.to_owned())]
fn structured_finds_object_in_text(#[case] content: String) {
    assert_eq!(structured::read(&content, &questions()).unwrap(), [[0.25, 0.75], [1.0, 3.0]]);
}

#[rstest]
#[case::nothing("")]
#[case::prose("I think x.")]
#[case::an_array("[0.25]")]
#[case::cut_off(r#"{"q0":0.25,"q1":{"o0":1"#)]
#[case::missing(r#"{"q0":0.25}"#)]
#[case::null(r#"{"q0":null,"q1":{"o0":1,"o1":3}}"#)]
#[case::a_word(r#"{"q0":"high","q1":{"o0":1,"o1":3}}"#)]
#[case::beyond_one(r#"{"q0":1.01,"q1":{"o0":1,"o1":3}}"#)]
#[case::negative(r#"{"q0":-0.1,"q1":{"o0":1,"o1":3}}"#)]
#[case::infinite(r#"{"q0":1e999,"q1":{"o0":1,"o1":3}}"#)]
#[case::twice(r#"{"q0":0.1,"q0":0.9,"q1":{"o0":1,"o1":3}}"#)]
#[case::no_options(r#"{"q0":0.1,"q1":0.9}"#)]
#[case::an_option_missing(r#"{"q0":0.1,"q1":{"o0":1}}"#)]
#[case::an_option_too_many(r#"{"q0":0.1,"q1":{"o0":1,"o1":3,"o2":0}}"#)]
#[case::another_option(r#"{"q0":0.1,"q1":{"o0":1,"o2":3}}"#)]
#[case::an_option_twice(r#"{"q0":0.1,"q1":{"o0":1,"o0":3}}"#)]
#[case::all_zero(r#"{"q0":0.1,"q1":{"o0":0,"o1":0.0}}"#)]
#[case::a_negative_option(r#"{"q0":0.1,"q1":{"o0":2,"o1":-1}}"#)]
fn structured_rejects_invalid_probabilities(#[case] content: &str) {
    structured::read(content, &questions()).unwrap_err();
}

fn body(choice: &str) -> String {
    format!(r#"{{"choices":[{choice}],"usage":{{"prompt_tokens":7,"completion_tokens":1}}}}"#)
}

#[rstest]
#[case::filtered(r#"{"finish_reason":"content_filter","message":{"content":""}}"#, true)]
#[case::refused(r#"{"message":{"content":null,"refusal":"I cannot."}}"#, true)]
#[case::not_refused(r#"{"finish_reason":"stop","message":{"content":"A","refusal":""}}"#, false)]
fn read_detects_refusals(#[case] choice: &str, #[case] refused: bool) {
    assert_eq!(response::read(body(choice).as_bytes()).unwrap().refused, refused);
}

#[rstest]
#[case::none(r#"{"message":{"content":"A"}}"#)]
#[case::null(r#"{"message":{"content":"A"},"logprobs":null}"#)]
#[case::empty(r#"{"message":{"content":"A"},"logprobs":{}}"#)]
#[case::no_tokens(r#"{"message":{"content":"A"},"logprobs":{"content":[]}}"#)]
#[case::null_tokens(r#"{"message":{"content":"A"},"logprobs":{"content":null}}"#)]
#[case::no_alternatives(
    r#"{"message":{"content":"A"},"logprobs":{"content":[{"token":"A","logprob":-0.1,"top_logprobs":[]}]}}"#
)]
#[case::no_numbers(r#"{"message":{"content":"A"},"logprobs":{"content":[{"token":"A","top_logprobs":[{"token":"A","logprob":null}]}]}}"#)]
fn servers_that_tell_no_probabilities_are_seen(#[case] choice: &str) {
    let reply = response::read(body(choice).as_bytes()).unwrap();
    assert_eq!((reply.first_token, reply.content.as_str()), (None, "A"));
}

#[test]
fn read_adds_token_missing_from_alternatives() {
    let choice = r#"{"message":{"content":[{"type":"text","text":"B"}],"reasoning_content":"Hm."},"logprobs":{"content":[{"token":"B","logprob":-2,"top_logprobs":[{"token":"A","logprob":-0.5},{"token":"x","logprob":-9999}]}]}}"#;
    let reply = response::read(body(choice).as_bytes()).unwrap();
    assert!(reply.reasoned);
    assert_eq!(reply.content, "B");
    let tokens = reply.first_token.unwrap();
    let told: Vec<(&str, f64)> = tokens.iter().map(|token| (token.token.as_str(), token.probability)).collect();
    assert_eq!(told, [("A", (-0.5_f64).exp()), ("x", 0.0), ("B", (-2.0_f64).exp())]);
}

#[rstest]
#[case::no_json("<html>", MalformedAnswer::NotOfItsForm)]
#[case::an_array("[]", MalformedAnswer::NotOfItsForm)]
#[case::no_choices(r#"{"choices":[]}"#, MalformedAnswer::NoAnswers)]
#[case::no_message(r#"{"choices":[{"text":"A"}]}"#, MalformedAnswer::NoAnswers)]
#[case::odd_content(r#"{"choices":[{"message":{"content":1}}]}"#, MalformedAnswer::NotOfItsForm)]
#[case::odd_usage(r#"{"choices":[{"message":{"content":"A"}}],"usage":{"prompt_tokens":-1}}"#, MalformedAnswer::Usage)]
#[case::odd_logprobs(r#"{"choices":[{"message":{"content":"A"},"logprobs":[]}]}"#, MalformedAnswer::NotOfItsForm)]
#[case::a_probability_above_one(
    r#"{"choices":[{"message":{"content":"A"},"logprobs":{"content":[{"token":"A","logprob":0.5,"top_logprobs":[{"token":"A","logprob":0.5}]}]}}]}"#,
    MalformedAnswer::Answer("its token probabilities exceed 1")
)]
#[case::probabilities_above_one(
    r#"{"choices":[{"message":{"content":"A"},"logprobs":{"top_logprobs":[{"A":-0.1,"B":-0.1}]}}]}"#,
    MalformedAnswer::Answer("its token probabilities exceed 1")
)]
#[case::no_number(
    r#"{"choices":[{"message":{"content":"A"},"logprobs":{"top_logprobs":[{"A":"high"}]}}]}"#,
    MalformedAnswer::Answer("a log-probability is no number")
)]
fn read_reports_error_of_malformed_body(#[case] body: &str, #[case] error: MalformedAnswer) {
    assert_eq!(response::read(body.as_bytes()).unwrap_err().error, error);
}

#[test]
fn read_keeps_usage_of_malformed_body() {
    let bad = response::read(body(r#"{"message":1}"#).as_bytes()).unwrap_err();
    assert_eq!(bad.usage.unwrap().input_tokens, 7);
}

proptest! {
    #[test]
    fn read_never_panics_on_any_body(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = response::read(&body);
        let _ = structured::read(&String::from_utf8_lossy(&body), &questions());
    }

    /// Valid bodies in which something was cut, duplicated or changed.
    #[test]
    fn read_never_panics_on_damaged_body(at in 0_usize..400, cut in 0_usize..20, with in ".{0,3}") {
        let whole = body(r#"{"message":{"content":"{\"q0\":0.2,\"q1\":{\"o0\":1,\"o1\":2}}","refusal":null},"finish_reason":"stop","logprobs":{"content":[{"token":"A","logprob":-0.5,"top_logprobs":[{"token":"A","logprob":-0.5},{"token":" b","logprob":-1e0}]}]}}"#);
        let mut bytes = whole.into_bytes();
        let (from, to) = (at.min(bytes.len()), (at + cut).min(bytes.len()));
        bytes.splice(from..to, with.bytes());
        if let Ok(reply) = response::read(&bytes) {
            let _ = structured::read(&reply.content, &questions());
        }
    }
}
