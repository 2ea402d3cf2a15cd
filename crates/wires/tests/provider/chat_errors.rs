//! Errors of servers that reject members, in their different formats.

use domain::json::Json;
use domain::routing::AttemptFailureKind;
use proptest::prelude::*;
use rstest::rstest;
use wires::chat::errors::{Objection, objection, read, read_error_in_answer};
use wires::chat::members::{Member, Members};
use wires::chat::provider_request::{RequestedOutput, member_to_omit};

use Objection::Logprobs;

fn member(member: Member) -> Objection {
    Objection::Member(member)
}

#[rstest]
#[case(
    r#"{"error":{"message":"Unrecognized request argument supplied: chat_template_kwargs","param":null}}"#,
    member(Member::ChatTemplateKwargs)
)]
#[case(r#"{"error":{"message":"Unsupported value.","param":"reasoning_effort"}}"#, member(Member::ReasoningEffort))]
#[case(
    r#"{"error":{"message":"Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
    member(Member::MaxTokens)
)]
#[case(r#"{"error":{"message":"'temperature' does not support 0 with this model."}}"#, member(Member::Temperature))]
#[case(r#"{"error":{"message":"This model does not support LogProbs."}}"#, Logprobs)]
#[case(r#"{"error":"`logprobs` is not supported"}"#, Logprobs)]
#[case(r#"{"message":"top_logprobs must be at most 5"}"#, Logprobs)]
#[case(r#"{"detail":"response_format of type json_schema is unknown"}"#, member(Member::ResponseFormat))]
#[case(r#"{"detail":[{"type":"extra_forbidden","loc":["body","reasoning_effort"],"msg":"Extra inputs are not permitted","input":"none"}]}"#, member(Member::ReasoningEffort))]
#[case("chat_template_kwargs: unknown field", member(Member::ChatTemplateKwargs))]
fn an_objection_names_what_is_not_taken(#[case] body: &str, #[case] expected: Objection) {
    assert_eq!(objection(body.as_bytes()), Some(expected));
    assert_eq!(read(400, body.as_bytes()).unwrap().kind, AttemptFailureKind::RejectedByProvider);
}

#[rstest]
#[case(r#"{"error":{"message":"Your request is odd.","param":"messages"}}"#)]
#[case::what_is_repeated(
    r#"{"detail":[{"loc":["body","messages"],"msg":"too long","input":"about logprobs and temperature"}]}"#
)]
#[case("")]
fn other_errors_are_no_objection(#[case] body: &str) {
    assert_eq!((objection(body.as_bytes()), read(400, body.as_bytes())), (None, None));
}

#[test]
fn objection_searches_only_beginning_of_text() {
    let far = format!(r#"{{"message":"{}logprobs"}}"#, " ".repeat(4096));
    assert_eq!(objection(far.as_bytes()), None);
    let near = format!(r#"{{"message":"{}logprobs"}}"#, " ".repeat(4000));
    assert_eq!(objection(near.as_bytes()), Some(Logprobs));
}

#[rstest]
#[case(400, "logprobs", true)]
#[case(403, "logprobs", true)]
#[case(422, "logprobs", true)]
#[case(501, "logprobs", true)]
#[case(403, "temperature", false)]
#[case(401, "logprobs", false)]
#[case(500, "logprobs", false)]
fn read_finds_objections_only_with_matching_status(#[case] status: u16, #[case] body: &str, #[case] is_one: bool) {
    assert_eq!(read(status, body.as_bytes()).is_some(), is_one);
}

#[rstest]
#[case(r#"{"error":{"code":503,"message":"busy"}}"#, Some(AttemptFailureKind::Overloaded))]
#[case(r#"{"error":{"code":502.0}}"#, Some(AttemptFailureKind::HttpError))]
#[case(r#"{"error":{"code":429},"choices":[]}"#, Some(AttemptFailureKind::Overloaded))]
#[case(r#"{"error":{"code":429,"type":"insufficient_quota"}}"#, Some(AttemptFailureKind::ProviderAuthFailed))]
#[case(r#"{"error":{"code":"busy"}}"#, None)]
#[case(r#"{"error":{"code":200}}"#, None)]
#[case(r#"{"error":{"code":1e999}}"#, None)]
#[case(r#"{"error":"busy"}"#, None)]
fn read_error_in_answer_detects_error_code(#[case] body: &str, #[case] expected: Option<AttemptFailureKind>) {
    assert_eq!(read_error_in_answer(body.as_bytes()).map(|failure| failure.kind), expected);
}

#[test]
fn member_to_omit_is_sent_and_optional() {
    use Member::{MaxCompletionTokens, MaxTokens, ResponseFormat, Temperature};
    let label = RequestedOutput::Label { top_logprobs: 5 };
    let object = RequestedOutput::Object { schema: Json::parse("{}").unwrap(), max_tokens: 9 };
    let (all, without) = (Members::default(), Members::default().with(MaxTokens));
    assert_eq!(member_to_omit(&label, all, Temperature), Some(Temperature));
    assert_eq!(member_to_omit(&label, all.with(Temperature), Temperature), None, "it was not sent");
    assert_eq!(member_to_omit(&label, all, ResponseFormat), None, "it was not sent");
    assert_eq!(member_to_omit(&object, all, ResponseFormat), Some(ResponseFormat));
    // Errors may use either name.
    for named in [MaxTokens, MaxCompletionTokens] {
        assert_eq!(member_to_omit(&label, all, named), Some(MaxTokens));
        assert_eq!(member_to_omit(&label, without, named), None, "a label stays bounded");
        assert_eq!(member_to_omit(&object, without, named), Some(MaxCompletionTokens));
        assert_eq!(member_to_omit(&object, without.with(MaxCompletionTokens), named), None);
    }
}

proptest! {
    #[test]
    fn read_never_panics_on_any_bytes(status in 0_u16..1000, body in prop::collection::vec(any::<u8>(), 0..200)) {
        read(status, &body);
        read_error_in_answer(&body);
    }

    #[test]
    fn read_never_panics_on_near_errors(
        body in r#"\{"(error|detail|message)":(\{"(message|param|code)":("(logprobs|é)"|[0-9e+]{1,5})\}|\[\{"loc":\["(temperature|x)"(,1)?\]\}\]|"x")\}"#,
    ) {
        read(400, body.as_bytes());
        read_error_in_answer(body.as_bytes());
    }
}
