use super::*;
use crate::question::{ChoiceOption, QuestionKind};
use crate::routing::{MaxPrice, Quantization, Sort, SortBy};
use proptest::prelude::*;
use rstest::rstest;

mod attachments;
mod canonical;
mod models;

fn draft(questions: &str, state: Option<&str>) -> DecisionDraft {
    DecisionDraft {
        model: Some(Json::parse("\"acme/judge\"").unwrap()),
        questions: Some(Json::parse(questions).unwrap()),
        state: state.map(|state| Json::parse(state).unwrap()),
        ..DecisionDraft::default()
    }
}

fn fault(questions: &str) -> String {
    draft(questions, Some("\"x\"")).check().unwrap_err().to_string()
}

#[test]
fn typed_questions_keep_their_order() {
    let request = draft(
        r#"{"refund":{"type":"noul","instructions":"Refund?","criteria":{"true":"money","false":null}},
            "queue":{"type":"choice","criteria":{"billing":"money","other":null}},
            "heat":{"type":"score","instructions":["how","upset"],"criteria":["calm",{"a":1}]}}"#,
        Some("{}"),
    )
    .check()
    .unwrap();
    let typed = request.provider_input.questions.typed.clone().unwrap();
    assert_eq!(
        typed.iter().map(|q| (q.name.as_str(), q.kind.as_str())).collect::<Vec<_>>(),
        [("refund", "noul"), ("queue", "choice"), ("heat", "score")]
    );
    assert!(matches!(&typed[0].kind, QuestionKind::Noul { when_true: Some(_), when_false: None }));
    assert!(matches!(&typed[1].kind, QuestionKind::Choice { options } if options[1].name == "other"));
}

#[rstest]
#[case::string("\"Is it on fire?\"")]
#[case::array("[1,2]")]
#[case::untyped_objects(r#"{"a":{"b":1}}"#)]
#[case::plain_members(r#"{"a":"b"}"#)]
#[case::number("7")]
fn opaque_questions_are_kept_byte_for_byte(#[case] questions: &str) {
    let request = draft(questions, None).check().unwrap();
    assert_eq!(request.provider_input.questions.json.text(), questions);
    assert!(request.provider_input.questions.typed.is_none());
}

#[rstest]
#[case::type_forgotten(
    r#"{"a":{"instructions":"Refund?"}}"#,
    "questions.a.type: is required: noul, choice, score or box"
)]
#[case::criteria_alone(
    r#"{"b":"x","a":{"criteria":["calm"]}}"#,
    "questions.b: must be an object with a type, not a string"
)]
#[case::question_for_instructions(
    r#"{"a":{"type":"noul","question":"Refund?"}}"#,
    r#"questions.a.question: unknown member; the text of a question is "instructions""#
)]
#[case::array_of_questions(
    r#"[{"name":"a","type":"noul","instructions":"Refund?"}]"#,
    r#"questions: must be an object that maps names to questions, for example {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}; POST /v1/decisions takes an array of questions"#
)]
fn check_rejects_invalid_questions_that_look_typed(#[case] questions: &str, #[case] expected: &str) {
    assert_eq!(draft(questions, Some("{}")).check().unwrap_err().to_string(), expected);
}

#[rstest]
#[case(r"{}", "questions: must have at least one question")]
#[case(
    r#"{"a":{"type":"noul","instructions":"?"},"b":"x"}"#,
    "questions.b: must be an object with a type, not a string"
)]
#[case(
    r#"{"a":{"type":"noul","instructions":"?"},"b":{"instructions":"?"}}"#,
    "questions.b.type: is required: noul, choice, score or box"
)]
#[case(r#"{"a":{"type":"magic"}}"#, "questions.a.type: must be noul, choice, score or box")]
#[case(r#"{"a":{"type":7}}"#, "questions.a.type: must be noul, choice, score or box")]
#[case(r#"{"a":{"type":"noul"}}"#, "questions.a.criteria: is required where there are no instructions")]
#[case(
    r#"{"a":{"type":"noul","criteria":{"true":null}}}"#,
    "questions.a.criteria: is required where there are no instructions"
)]
#[case(
    r#"{"a":{"type":"noul","instructions":5}}"#,
    "questions.a.instructions: must be a string, object or array, not a number"
)]
#[case(
    r#"{"a":{"type":"noul","instructions":"?","criteria":[]}}"#,
    "questions.a.criteria: must be an object with the members true and false"
)]
#[case(
    r#"{"a":{"type":"noul","criteria":{"true":true}}}"#,
    "questions.a.criteria.true: must be a string, object or array, not a boolean"
)]
#[case(
    r#"{"a":{"type":"choice","instructions":"?"}}"#,
    r#"questions.a.criteria: must be an object that maps each option name to a description or null, for example {"billing": "money", "other": null}"#
)]
#[case(r#"{"a":{"type":"choice","criteria":[]}}"#, r#"questions.a.criteria: must be an object that maps each option name to a description or null, for example {"billing": "money", "other": null}"#)]
#[case(r#"{"a":{"type":"choice","criteria":{}}}"#, "questions.a.criteria: must have 1 to 255 options, not 0")]
#[case(
    r#"{"a":{"type":"choice","criteria":{"x":1}}}"#,
    "questions.a.criteria.x: must be a string, object or array, not a number"
)]
#[case(
    r#"{"a":{"type":"choice","criteria":{"x":null,"x":null}}}"#,
    "questions.a.criteria.x: is in the object more than once"
)]
#[case(
    r#"{"a":{"type":"score","criteria":{}}}"#,
    r#"questions.a.criteria: must be an array of level descriptions, lowest first, for example ["calm", "furious"]"#
)]
#[case(r#"{"a":{"type":"score","criteria":[]}}"#, "questions.a.criteria: must have 1 to 10 levels, not 0")]
#[case(
    r#"{"a":{"type":"score","criteria":["x",null]}}"#,
    "questions.a.criteria[1]: must be a string, object or array, not null"
)]
#[case(
    r#"{"a":{"type":"noul","type":"score","instructions":"?"}}"#,
    "questions.a.type: is in the object more than once"
)]
#[case(
    r#"{"a":{"type":"noul","instructions":"?"},"a":{"type":"noul","instructions":"?"}}"#,
    "questions.a: is in the object more than once"
)]
#[case(r#"{"a b":{"type":"x"}}"#, "questions[\"a b\"].type: must be noul, choice, score or box")]
fn check_reports_path_of_invalid_question(#[case] questions: &str, #[case] expected: &str) {
    assert_eq!(fault(questions), expected);
}

#[test]
fn check_rejects_options_and_levels_above_maximum() {
    let options = |n: usize| (0..n).map(|i| format!("\"o{i}\":null")).collect::<Vec<_>>().join(",");
    let choice = |n| format!(r#"{{"a":{{"type":"choice","criteria":{{{}}}}}}}"#, options(n));
    assert!(draft(&choice(255), Some("\"x\"")).check().is_ok());
    assert!(fault(&choice(256)).contains("1 to 255"));
    let score = |n: usize| format!(r#"{{"a":{{"type":"score","criteria":[{}]}}}}"#, vec!["\"l\""; n].join(","));
    assert!(draft(&score(10), Some("\"x\"")).check().is_ok());
    assert!(fault(&score(11)).contains("1 to 10"));
}

#[rstest]
#[case(None, "state: is required with typed questions")]
#[case(Some("null"), "state: is required with typed questions")]
#[case(Some("5"), "state: must be a string, object or array with typed questions, not a number")]
fn check_rejects_typed_questions_without_state(#[case] state: Option<&str>, #[case] expected: &str) {
    let error = draft(r#"{"a":{"type":"noul","instructions":"?"}}"#, state).check().unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn session_id_of_body_overrides_header() {
    let with = |body: Option<&str>, header: Option<String>| {
        let session_id = body.map(|text| Json::parse(text).unwrap());
        DecisionDraft { session_id, session_id_header: header, ..draft("\"?\"", None) }.check()
    };
    let long = "é".repeat(257);
    assert_eq!(with(Some("\"b\""), Some("h".into())).unwrap().session_id.as_deref(), Some("b"));
    assert_eq!(with(None, Some("h".into())).unwrap().session_id.as_deref(), Some("h"));
    assert_eq!(with(Some("null"), Some("h".into())).unwrap().session_id.as_deref(), Some("h"));
    assert_eq!(with(Some("\"b\""), Some(long.clone())).unwrap().session_id.as_deref(), Some("b"));
    assert_eq!(with(None, Some(long.clone())).unwrap_err().path, "x-session-id");
    assert_eq!(with(Some(&format!("\"{long}\"")), None).unwrap_err().path, "session_id");
    assert!(with(Some(&format!("\"{}\"", "é".repeat(256))), None).is_ok());
}

#[test]
fn trace_is_rejected_above_its_bound() {
    let of_bytes = |bytes: usize| {
        let trace = Json::parse(&format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8))).unwrap();
        DecisionDraft { trace: Some(trace), ..draft("\"?\"", None) }
    };
    assert!(of_bytes(65_536).check().is_ok());
    let error = of_bytes(65_537).check().unwrap_err();
    assert_eq!(error.to_string(), "trace: must take at most 65536 bytes as JSON, not 65537; send less metadata");
    assert_eq!(error.path, "trace");
}

#[test]
fn check_reads_or_rejects_each_preference() {
    let with = |provider: &str| {
        DecisionDraft { provider: Some(Json::parse(provider).unwrap()), ..draft("\"?\"", None) }.check()
    };
    assert!(!with(r#"{"allow_fallbacks":false,"unheard_of":null,"order":null}"#).unwrap().preferences.allow_fallbacks);
    assert_eq!(
        with(r#"{"zrd":true}"#).unwrap_err().to_string(),
        r#"provider: unknown member "zrd"; the nearest known member is "zdr""#
    );
    assert_eq!(
        with(r#"{"max_price":{"promt":1}}"#).unwrap_err().to_string(),
        r#"provider.max_price: unknown member "promt"; the nearest known member is "prompt""#
    );
    assert!(with(r#"{"max_price":{"prompt":1,"unheard_of":null}}"#).is_ok());
    assert!(with(r#"{"zdr":false,"data_collection":"allow"}"#).is_ok());
    let all = r#"{"order":["A"],"only":["a","b"],"ignore":[],"zdr":true,"data_collection":"deny","options":{},
        "quantizations":["fp8"],"sort":{"by":"latency","partition":"none"},"max_price":{"prompt":1e-1,"request":"2"},
        "preferred_max_latency":1.5,"preferred_min_throughput":{"p90":20},"require_parameters":true}"#;
    let read = with(all).unwrap().preferences;
    assert_eq!((read.order, read.only), (vec!["a".to_owned()], Some(vec!["a".to_owned(), "b".to_owned()])));
    assert!(read.zdr && read.deny_data_collection && read.require_parameters);
    assert_eq!(read.sort, Some(Sort { by: SortBy::Latency, across_models: true }));
    assert_eq!(read.max_price, MaxPrice { prompt: "0.1".parse().ok(), completion: None });
    assert_eq!((read.preferred_max_latency.p50, read.preferred_min_throughput.p90), (Some(1_500), Some(20_000)));
    assert_eq!(read.quantizations, Some(vec![Quantization::Fp8]));
    for refused in [
        r#"{"order":"a"}"#,
        r#"{"only":[""]}"#,
        r#"{"zdr":"yes"}"#,
        r#"{"sort":"exacto"}"#,
        r#"{"sort":{"by":"price","partition":"all"}}"#,
        r#"{"max_price":{"prompt":-1}}"#,
        r#"{"max_price":{"image":"free"}}"#,
        r#"{"max_price":{"promt":1}}"#,
        r#"{"sort":{"by":"price","order":"descending"}}"#,
        r#"{"preferred_max_latency":{"p95":1}}"#,
        r#"{"preferred_max_latency":-1}"#,
        r#"{"preferred_min_throughput":{"p50":"1"}}"#,
        r#"{"quantizations":["int3"]}"#,
        r#"{"data_collection":"maybe"}"#,
        r#"{"enforce_distillable_text":true}"#,
        r#"{"options":{"acme":{}}}"#,
        r#"{"allow_fallbacks":1}"#,
        r#"{"allow_fallbacks":true,"allow_fallbacks":false}"#,
        "[]",
    ] {
        assert!(with(refused).unwrap_err().path.starts_with("provider"), "{refused}");
    }
}

#[test]
fn check_rejects_preferences_above_bounds() {
    let with = |provider: String| {
        let read = DecisionDraft { provider: Some(Json::parse(&provider).unwrap()), ..draft("\"?\"", None) }.check();
        read.map(|request| request.preferences)
    };
    let list = |count: usize| (0..count).map(|number| format!("\"p{number}\"")).collect::<Vec<_>>().join(",");
    for member in ["order", "only", "ignore"] {
        assert!(with(format!(r#"{{"{member}":[{}]}}"#, list(64))).is_ok(), "{member}");
        let fault = with(format!(r#"{{"{member}":[{}]}}"#, list(65))).unwrap_err().to_string();
        assert_eq!(fault, format!("provider.{member}: must have at most 64 entries"));
        let named = |length: usize| with(format!(r#"{{"{member}":["{}"]}}"#, "x".repeat(length)));
        assert!(named(128).is_ok() && named(129).is_err(), "{member}");
    }
    for member in ["preferred_max_latency", "preferred_min_throughput"] {
        let bound = |number: &str| {
            with(format!(r#"{{"{member}":{number}}}"#)).map(|read| match member {
                "preferred_max_latency" => read.preferred_max_latency.p50,
                _ => read.preferred_min_throughput.p50,
            })
        };
        assert_eq!(bound("0"), Ok(Some(0)));
        assert_eq!(bound("0.0005"), Ok(Some(1)), "thousandths, rounded");
        assert_eq!(bound("1e9"), Ok(Some(1_000_000_000_000)));
        assert!(bound("1000000000.001").is_err() && bound("-0.001").is_err(), "{member}");
    }
    let price = |number: &str| with(format!(r#"{{"max_price":{{"prompt":{number}}}}}"#));
    assert!(price("0").is_ok() && price("99999999999999").is_ok() && price("1e14").is_err());
}

#[test]
fn check_rejects_missing_members() {
    let empty = DecisionDraft::default().check().unwrap_err();
    assert_eq!(empty.to_string(), "model: is required");
    let no_questions = DecisionDraft { questions: None, ..draft("1", None) }.check().unwrap_err();
    assert_eq!(no_questions.to_string(), "questions: is required");
    for (model, trace) in [("7", "{}"), ("\"\"", "{}"), ("\"m\"", "[]")] {
        let (model, trace) = (Json::parse(model).ok(), Json::parse(trace).ok());
        assert!(DecisionDraft { model, trace, ..draft("1", None) }.check().is_err());
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let name = prop::sample::select(vec!["type", "instructions", "criteria", "true", "false", "a", ""]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        prop::sample::select(vec!["noul", "choice", "score", "x", ""]).prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((name.clone(), inner), 0..5).prop_map(|members| {
                members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect::<serde_json::Map<_, _>>().into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn check_never_panics_and_keeps_accepted_input(questions in any_json(), state in any_json()) {
        let text = questions.to_string();
        let draft = draft(&text, Some(&state.to_string()));
        if let Ok(request) = draft.check() {
            prop_assert_eq!(request.provider_input.questions.json.text(), text);
        }
    }
}
