use super::*;
use domain::decision::DecisionDraft;
use domain::question::{AnswerRules, Answers, ConfidenceSource};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn questions(json: &Value) -> Questions {
    let draft = DecisionDraft {
        model: Json::parse("\"m\"").ok(),
        questions: Some(Json::from(json.clone())),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap().provider_input.questions.clone()
}

fn answered(asked: &Value, state: &Value) -> String {
    answers(&questions(asked), Some(&Json::from(state.clone()))).text().to_owned()
}

#[test]
fn answers_follow_word_overlap() {
    let asked = json!({
        "refund": {"type": "noul", "instructions": "Does the writer want a refund?",
                   "criteria": {"true": "asks for money back", "false": "anything else"}},
        "queue": {"type": "choice", "criteria": {"billing": "money", "hardware": "device faults", "other": null}},
        "heat": {"type": "score", "criteria": ["calm", {"how": "annoyed"}, "furious"]}
    });
    let state =
        json!({"subject": "Broken blender", "body": ["I want my money back.", "I am furious about the device"]});
    let expected = concat!(
        // want, money, back for yes; nothing for no: 3.5 of 4.
        r#"{"heat":{"type":"score","score":1.37,"confidence":0.05,"legend":{"0":"calm","1":{"how":"annoyed"},"#,
        r#""2":"furious"},"probabilities":{"0":0.21,"1":0.21,"2":0.58}},"#,
        r#""queue":{"type":"choice","choice":"billing","confidence":0.13,"#,
        r#""probabilities":{"billing":0.42,"hardware":0.42,"other":0.16}},"#,
        r#""refund":{"type":"noul","noul":0.88}}"#
    );
    // `json!` sorts the members; the answers follow the order of the questions.
    assert_eq!(answered(&asked, &state), expected);
    assert_eq!(answered(&asked, &state), answered(&asked, &state));
}

#[test]
fn answers_ignore_words_of_both_sides() {
    let asked = |yes: &str, no: &str| json!({"a": {"type": "noul", "criteria": {"true": yes, "false": no}}});
    let noul = |yes, no| answered(&asked(yes, no), &json!("red green blue"));
    assert_eq!(noul("red", "red"), r#"{"a":{"type":"noul","noul":0.5}}"#);
    assert_eq!(noul("red green", "red"), r#"{"a":{"type":"noul","noul":0.75}}"#);
    assert_eq!(noul("grey", "red green blue"), r#"{"a":{"type":"noul","noul":0.13}}"#);
}

#[test]
fn probability_stays_between_one_and_99_hundredths() {
    assert_eq!((probability(10_000, 0), probability(0, 10_000)), (99, 1));
    assert_eq!((probability(0, 0), probability(3, 1)), (50, 70));
}

#[test]
fn opaque_questions_get_single_answer() {
    let opaque = |asked: Value, state: Option<Value>| {
        answers(&questions(&asked), state.map(Json::from).as_ref()).text().to_owned()
    };
    let expected = r#"{"answer":{"type":"noul","noul":0.75}}"#;
    assert_eq!(opaque(json!("Is it on fire?"), Some(json!({"log": "FIRE in hall 3"}))), expected);
    assert_eq!(opaque(json!(["fire"]), None), r#"{"answer":{"type":"noul","noul":0.5}}"#);
}

#[test]
fn answers_escape_names() {
    let odd = "q\"\\\u{0}\n\u{1f600}";
    let mut options = Map::new();
    options.insert(odd.to_owned(), Value::Null);
    let mut asked = Map::new();
    asked.insert(odd.to_owned(), json!({"type": "choice", "criteria": options}));
    let answer: Value = serde_json::from_str(&answered(&Value::Object(asked), &json!("x"))).unwrap();
    assert_eq!(answer[odd]["choice"], odd);
    assert_eq!(answer[odd]["probabilities"][odd], 1.0);
    assert_eq!(answer[odd]["confidence"], 1.0);
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        "(red|green|blue|[a-z]{0,3}|\\PC{0,4})( (red|green|blue|\\PC{0,3})){0,4}".prop_map(Value::from),
        prop::collection::vec("(red|green|blue)?", 0..3).prop_map(|words| json!(words)),
        "(red|green|blue)".prop_map(|word| json!({ "deep": [word, 1.5, null] })),
    ]
}

fn question() -> impl Strategy<Value = Value> {
    let noul = (text(), prop::option::of(text()), prop::option::of(text())).prop_map(
        |(instructions, yes, no)| json!({"type": "noul", "instructions": instructions, "criteria": {"true": yes, "false": no}}),
    );
    let options = prop::collection::btree_map("\\PC{0,6}", prop::option::of(text()), 1..256);
    let choice = options.prop_map(|options| json!({"type": "choice", "criteria": options}));
    let score = prop::collection::vec(text(), 1..11).prop_map(|levels| json!({"type": "score", "criteria": levels}));
    prop_oneof![noul, choice, score]
}

fn hundredths(value: &Value) -> i64 {
    let scaled = value.as_f64().unwrap() * 100.0;
    assert!((scaled - scaled.round()).abs() < 1e-6, "{value} has more than two decimals");
    #[expect(clippy::cast_possible_truncation, reason = "a probability or a score, rounded")]
    let whole = scaled.round() as i64;
    whole
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(domain::testing::property_cases(64, ProptestConfig::default().cases)))]

    #[test]
    fn answers_match_any_questions(
        asked in prop::collection::btree_map("\\PC{0,8}", question(), 1..5),
        state in text(),
    ) {
        let asked = questions(&json!(asked));
        let given = answers(&asked, Some(&Json::from(state)));
        let rules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };
        prop_assert!(Answers::check(&asked, &given, rules).is_ok());
        let order: Vec<String> = given.members().unwrap().into_iter().map(|(name, _)| name).collect();
        let typed = asked.typed.unwrap();
        prop_assert_eq!(order, typed.iter().map(|question| question.name.clone()).collect::<Vec<_>>());
        let given: Value = serde_json::from_str(given.text()).unwrap();
        for question in typed.iter() {
            let answer = &given[&question.name];
            if let QuestionKind::Noul { .. } = question.kind {
                prop_assert!((1..=99).contains(&hundredths(&answer["noul"])));
                continue;
            }
            let probabilities = answer["probabilities"].as_object().unwrap();
            prop_assert_eq!(probabilities.values().map(hundredths).sum::<i64>(), 100);
            prop_assert!((0..=100).contains(&hundredths(&answer["confidence"])));
            if let QuestionKind::Choice { options } = &question.kind {
                prop_assert_eq!(probabilities.len(), options.len());
                let most = probabilities.values().map(hundredths).max().unwrap();
                let first = options.iter().find(|option| hundredths(&probabilities[&option.name]) == most).unwrap();
                prop_assert_eq!(answer["choice"].as_str().unwrap(), &first.name);
            } else {
                let expected: i64 =
                    probabilities.iter().map(|(level, p)| level.parse::<i64>().unwrap() * hundredths(p)).sum();
                prop_assert_eq!(hundredths(&answer["score"]), expected);
            }
        }
    }
}
