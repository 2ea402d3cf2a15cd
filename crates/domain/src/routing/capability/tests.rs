use super::*;
use crate::decision::DecisionDraft;
use crate::json::Json;
use crate::question::{Questions, StateForm};
use crate::routing::{EndpointLimits, Wire};
use rstest::rstest;

use AttachmentForm::{Assets, Images, InState, None as NoMedia};
use StateForm::{GeminiParts, OpenAiItems, Plain};
use Wire::{ChatCompletions, GeminiDecisions, OpenAiDecisions, Sandbox, SglangDecisions, SystemOne};

fn endpoint(wire: Wire) -> Endpoint {
    Endpoint::new("acme/judge".parse().unwrap(), "acme".parse().unwrap(), wire, "judge")
}

fn provider_input(questions: &str) -> ProviderInput {
    let draft = DecisionDraft {
        model: Json::parse("\"m\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    (*draft.check().unwrap().provider_input).clone()
}

fn question(json: &str) -> Question {
    provider_input(&format!("{{\"q\":{json}}}")).questions.typed.unwrap()[0].clone()
}

#[rstest]
fn check_input_accepts_opaque_questions_on_verbatim_wires(
    #[values(SystemOne, Sandbox, OpenAiDecisions, GeminiDecisions, SglangDecisions, ChatCompletions)] wire: Wire,
) {
    let opaque = ProviderInput::new(Questions { json: Json::string("?"), typed: None }, None);
    let expected = matches!(wire, SystemOne | Sandbox).then_some(()).ok_or(UnsupportedQuestions::OpaqueQuestions);
    assert_eq!(endpoint(wire).check_input(&opaque), expected);
}

#[rstest]
#[case::assets(Attachments::Assets(Vec::new()), Plain, &[(SystemOne, Assets)])]
#[case::images(Attachments::Images(Json::array([])), Plain, &[(SystemOne, Images), (SglangDecisions, Images)])]
#[case::openai_items(Attachments::InState, OpenAiItems, &[(OpenAiDecisions, InState)])]
#[case::gemini_parts(Attachments::InState, GeminiParts, &[(GeminiDecisions, InState)])]
#[case::no_form(Attachments::InState, Plain, &[])]
fn check_input_accepts_media_only_in_form_of_endpoint(
    #[case] attachments: Attachments,
    #[case] state_form: StateForm,
    #[case] taken: &[(Wire, AttachmentForm)],
) {
    let provider_input =
        ProviderInput { state_form, attachments, ..provider_input(r#"{"q":{"type":"noul","instructions":"?"}}"#) };
    for wire in Wire::ALL {
        for form in [NoMedia, Assets, Images, InState] {
            let endpoint = Endpoint { attachments: form, ..endpoint(wire) };
            let expected = if taken.contains(&(wire, form)) { Ok(()) } else { Err(UnsupportedQuestions::Attachments) };
            assert_eq!(endpoint.check_input(&provider_input), expected, "{wire:?} {form:?}");
        }
    }
}

#[rstest]
#[case("noul", r#"{"type":"noul","instructions":"?"}"#, &Wire::ALL)]
#[case("choice", r#"{"type":"choice","criteria":{"x":null}}"#, &Wire::ALL)]
#[case("score", r#"{"type":"score","criteria":["x"]}"#, &Wire::ALL)]
#[case("box", r#"{"type":"box"}"#, &[SystemOne])]
fn check_question_accepts_types_of_wire(#[case] name: &str, #[case] json: &str, #[case] wires: &[Wire]) {
    let question_type = QuestionType::from_name(name).unwrap();
    for wire in Wire::ALL {
        let endpoint = Endpoint { attachments: Assets, ..endpoint(wire) };
        let expected =
            if wires.contains(&wire) { Ok(()) } else { Err(UnsupportedQuestions::QuestionType(question_type)) };
        assert_eq!(endpoint.check_question(&question(json)), expected, "{wire:?}");
        let others: Vec<QuestionType> = QuestionType::ALL.into_iter().filter(|other| *other != question_type).collect();
        let without = Endpoint { question_types: Some(others), ..endpoint };
        assert_eq!(without.check_question(&question(json)), Err(UnsupportedQuestions::QuestionType(question_type)));
    }
}

#[rstest]
#[case::equal_without_case(SglangDecisions, &["a", " A"], Err(UnsupportedQuestions::SameOptions))]
#[case::equal_when_folded(SglangDecisions, &["STRASSE", "straße"], Err(UnsupportedQuestions::SameOptions))]
#[case::two_lines(SglangDecisions, &["a\\nb", "c"], Err(UnsupportedQuestions::OptionName))]
#[case::spaces_around(GeminiDecisions, &["a ", "b"], Err(UnsupportedQuestions::OptionName))]
#[case::one_outcome_is_answered_locally(GeminiDecisions, &["a "], Ok(()))]
#[case::any_names(OpenAiDecisions, &["a", "A "], Ok(()))]
#[case::prompts_of_our_own(ChatCompletions, &["a", "A "], Ok(()))]
fn check_question_applies_rules_of_wire_to_option_names(
    #[case] wire: Wire,
    #[case] names: &[&str],
    #[case] expected: Result<(), UnsupportedQuestions>,
) {
    let options: Vec<String> = names.iter().map(|name| format!("\"{name}\":null")).collect();
    let choice = question(&format!(r#"{{"type":"choice","criteria":{{{}}}}}"#, options.join(",")));
    assert_eq!(endpoint(wire).check_question(&choice), expected);
}

#[rstest]
fn blank_texts_are_unsupported_where_wire_rejects_them(
    #[values(SystemOne, Sandbox, OpenAiDecisions, GeminiDecisions, SglangDecisions, ChatCompletions)] wire: Wire,
) {
    let level = question(r#"{"type":"score","criteria":["low"," "]}"#);
    let rejects_level = matches!(wire, GeminiDecisions | SglangDecisions);
    let expected = if rejects_level { Err(UnsupportedQuestions::EmptyLevel) } else { Ok(()) };
    assert_eq!(endpoint(wire).check_question(&level), expected);
    let unnamed = provider_input(r#"{" ":{"type":"noul","instructions":"?"}}"#).questions.typed.unwrap()[0].clone();
    let expected = if wire == SglangDecisions { Err(UnsupportedQuestions::QuestionName) } else { Ok(()) };
    assert_eq!(endpoint(wire).check_question(&unnamed), expected);
    let stateless = ProviderInput { state: None, ..provider_input(r#"{"q":{"type":"noul","instructions":"?"}}"#) };
    let expected = if wire == SglangDecisions { Err(UnsupportedQuestions::EmptyState) } else { Ok(()) };
    assert_eq!(endpoint(wire).check_input(&stateless), expected);
}

#[test]
fn check_question_rejects_box_without_images() {
    let expected = Err(UnsupportedQuestions::QuestionType(QuestionType::Box));
    assert_eq!(endpoint(SystemOne).check_question(&question(r#"{"type":"box"}"#)), expected);
}

#[test]
fn configured_limits_override_limits_of_wire() {
    let options: Vec<String> = (0..27).map(|option| format!("\"{option}\":null")).collect();
    let many = question(&format!(r#"{{"type":"choice","criteria":{{{}}}}}"#, options.join(",")));
    assert_eq!(endpoint(SglangDecisions).check_question(&many), Err(UnsupportedQuestions::Options(27)));
    let limits = EndpointLimits { max_options: Some(27), ..EndpointLimits::default() };
    assert_eq!(Endpoint { own_limits: limits, ..endpoint(SglangDecisions) }.check_question(&many), Ok(()));
    assert_eq!(endpoint(SglangDecisions).limits().or(limits).max_options, Some(26));
}

#[test]
fn check_input_rejects_state_above_size_limit() {
    let media = Attachments::Images(Json::array(["1"]));
    let provider_input =
        ProviderInput { attachments: media, ..provider_input(r#"{"q":{"type":"noul","instructions":"?"}}"#) };
    let of = |limits| {
        Endpoint { own_limits: limits, attachments: Images, ..endpoint(SystemOne) }.check_input(&provider_input)
    };
    let bytes = |max| EndpointLimits { max_body_bytes: Some(max), ..EndpointLimits::default() };
    let tokens = |max| EndpointLimits { max_input_tokens: Some(max), ..EndpointLimits::default() };
    // `"s"` and `[1]`
    assert_eq!((of(bytes(6)), of(tokens(6))), (Ok(()), Ok(())));
    assert_eq!((of(bytes(5)), of(tokens(5))), (Err(UnsupportedQuestions::Size), Err(UnsupportedQuestions::Size)));
}

#[rstest]
#[case::plain_noul(r#"{"type":"noul","instructions":"?"}"#, &[SystemOne, OpenAiDecisions, GeminiDecisions, SglangDecisions, Sandbox])]
#[case::criteria(r#"{"type":"noul","instructions":"?","criteria":{"true":"a"}}"#, &[SystemOne, GeminiDecisions, SglangDecisions, Sandbox])]
#[case::no_instructions(r#"{"type":"choice","criteria":{"x":null,"y":null}}"#, &[SystemOne, Sandbox])]
#[case::two_options(r#"{"type":"choice","instructions":"?","criteria":{"x":null,"y":null}}"#, &[SystemOne, OpenAiDecisions, GeminiDecisions, SglangDecisions, Sandbox])]
#[case::one_option(r#"{"type":"choice","instructions":"?","criteria":{"x":null}}"#, &[SystemOne, Sandbox])]
#[case::one_level(r#"{"type":"score","instructions":"?","criteria":["x"]}"#, &[SystemOne, Sandbox])]
fn supports_natively_depends_on_wire_and_question(#[case] json: &str, #[case] wires: &[Wire]) {
    for wire in Wire::ALL {
        assert_eq!(wire.supports_natively(&question(json)), wires.contains(&wire), "{wire:?}");
    }
}
