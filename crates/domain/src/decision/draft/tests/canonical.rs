//! Questions of other wires in canonical form.

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn canonical(instructions: Option<&str>, kind: QuestionKind) -> Result<Question, InvalidDecision> {
    Question::canonical("q", instructions.map(json), kind, "questions[0]")
}

fn noul(when_true: Option<&str>, when_false: Option<&str>) -> QuestionKind {
    QuestionKind::Noul { when_true: when_true.map(json), when_false: when_false.map(json) }
}

#[test]
fn canonical_writes_questions_in_canonical_form() {
    let text = |instructions, kind| canonical(instructions, kind).unwrap().json.text().to_owned();
    assert_eq!(text(Some("\"?\""), noul(None, None)), r#"{"type":"noul","instructions":"?"}"#);
    assert_eq!(text(None, noul(None, Some("\"n\""))), r#"{"type":"noul","criteria":{"false":"n"}}"#);
    let options = vec![ChoiceOption::new("a\"b", None), ChoiceOption::new("c", Some(json("[1]")))];
    assert_eq!(text(None, QuestionKind::Choice { options }), r#"{"type":"choice","criteria":{"a\"b":null,"c":[1]}}"#);
    let levels = vec![json("\"low\""), json(r#"{"x":1}"#)];
    assert_eq!(
        text(Some("[1]"), QuestionKind::Score { levels }),
        r#"{"type":"score","instructions":[1],"criteria":["low",{"x":1}]}"#
    );
    assert_eq!(text(Some("\"where?\""), QuestionKind::Box), r#"{"type":"box","instructions":"where?"}"#);
}

#[test]
fn canonical_keeps_boolean_options() {
    let option = ChoiceOption { boolean: Some(true), ..ChoiceOption::new("true", None) };
    let question = canonical(None, QuestionKind::Choice { options: vec![option.clone()] }).unwrap();
    assert_eq!(question.kind, QuestionKind::Choice { options: vec![option] });
    assert_eq!(question.json.text(), r#"{"type":"choice","criteria":{"true":null}}"#);
}

#[rstest]
#[case::no_instructions(None, noul(None, None), "questions[0].criteria")]
#[case::instructions_number(Some("7"), noul(None, None), "questions[0].instructions")]
#[case::no_options(None, QuestionKind::Choice { options: Vec::new() }, "questions[0].criteria")]
#[case::option_twice(
    None,
    QuestionKind::Choice { options: vec![
        ChoiceOption { boolean: Some(true), ..ChoiceOption::new("true", None) },
        ChoiceOption::new("true", None),
    ] },
    "questions[0].criteria.true"
)]
#[case::meaning_number(
    None,
    QuestionKind::Choice { options: vec![ChoiceOption::new("a", Json::parse("7").ok())] },
    "questions[0].criteria.a"
)]
#[case::too_many_levels(None, QuestionKind::Score { levels: vec![Json::string("l"); 11] }, "questions[0].criteria")]
#[case::null_level(None, QuestionKind::Score { levels: vec![json("null")] }, "questions[0].criteria[0]")]
fn canonical_rejects_questions_outside_canonical_form(
    #[case] instructions: Option<&str>,
    #[case] kind: QuestionKind,
    #[case] path: &str,
) {
    assert_eq!(canonical(instructions, kind).unwrap_err().path, path);
}

#[test]
fn typed_questions_replace_member_questions() {
    let question = canonical(Some("\"?\""), noul(None, None)).unwrap();
    let typed = |typed| DecisionDraft { questions: None, typed: Some(typed), ..draft("1", Some("\"s\"")) }.check();
    let request = typed(vec![question.clone()]).unwrap();
    assert_eq!(request.provider_input.questions, Questions::from_typed(vec![question]));
    assert_eq!(request.provider_input.questions.json.text(), r#"{"q":{"type":"noul","instructions":"?"}}"#);
    assert_eq!(typed(Vec::new()).unwrap_err().path, "questions");
}

fn any_text() -> impl Strategy<Value = Json> {
    prop_oneof![
        ".{0,12}".prop_map(|text| Json::string(&text)),
        Just(json("[1e400, 2.50]")),
        Just(json(r#"{"a":{"b":null}}"#))
    ]
}

fn any_kind() -> impl Strategy<Value = QuestionKind> {
    let options = prop::collection::btree_map(".{0,8}", prop::option::of(any_text()), 1..6).prop_map(|options| {
        QuestionKind::Choice {
            options: options.into_iter().map(|(name, meaning)| ChoiceOption::new(name, meaning)).collect(),
        }
    });
    prop_oneof![
        (prop::option::of(any_text()), prop::option::of(any_text()))
            .prop_map(|(when_true, when_false)| QuestionKind::Noul { when_true, when_false }),
        options,
        prop::collection::vec(any_text(), 1..=10).prop_map(|levels| QuestionKind::Score { levels }),
        Just(QuestionKind::Box),
    ]
}

proptest! {
    #[test]
    fn canonical_round_trips(name in ".{0,12}", instructions in any_text(), kind in any_kind()) {
        let question = Question::canonical(&name, Some(instructions.clone()), kind.clone(), "q").unwrap();
        prop_assert_eq!((&question.instructions, &question.kind), (&Some(instructions), &kind));
        let questions = Questions::from_typed(vec![question.clone()]);
        let read = draft(questions.json.text(), Some("\"s\"")).check().unwrap();
        prop_assert_eq!(read.provider_input.questions.typed.as_deref(), Some(&[question][..]));
    }
}
