use super::*;
use domain::json::JsonKind;
use proptest::prelude::*;
use rstest::rstest;

fn read(body: &[u8]) -> Result<WireAnswer, MalformedAnswer> {
    super::read(ResponseWrapper::None, body).map_err(|bad| bad.error)
}

fn enveloped(response_wrapper: ResponseWrapper, body: &str) -> Result<String, BadAnswer> {
    super::read(response_wrapper, body.as_bytes()).map(|answer| answer.answers.text().to_owned())
}

fn usage(text: &str) -> Result<Option<(u64, u64)>, MalformedAnswer> {
    let body = format!(r#"{{"answers":{{}},"usage":{text}}}"#);
    read(body.as_bytes()).map(|answer| answer.usage.map(|usage| (usage.input_tokens, usage.output_tokens)))
}

fn nested(levels: usize) -> Vec<u8> {
    // The body and the answers are two levels.
    let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
    format!(r#"{{"answers":{{"a":{open}{close}}}}}"#).into_bytes()
}

#[test]
fn read_keeps_answers_byte_for_byte() {
    let answers = r#"{ "b" : {"noul":0.10,"x":1e400} ,"a":"\u00e9[{" }"#;
    let body = format!(" {{\"model\":\"m\",\"answers\" :{answers} , \"extra\":[{{}}] }}\n");
    let answer = read(body.as_bytes()).unwrap();
    assert_eq!(answer.answers.text(), answers);
    assert_eq!(answer.usage, None);
}

#[rstest]
#[case(r#"{"input_tokens":212,"output_tokens":31}"#, Some((212, 31)))]
#[case(r#"{"input_tokens":12.0,"output_tokens":1.2e1,"cost":0.1}"#, Some((12, 12)))]
#[case(r#"{"input_tokens":1000000000}"#, Some((1_000_000_000, 0)))]
#[case(r#"{"input_tokens":1,"output_tokens":null}"#, Some((1, 0)))]
#[case(r#"{"output_tokens":3}"#, None)]
#[case("{}", None)]
#[case("null", None)]
fn read_accepts_whole_token_counts(#[case] text: &str, #[case] expected: Option<(u64, u64)>) {
    assert_eq!(usage(text), Ok(expected));
}

#[rstest]
#[case(r#"{"input_tokens":-1}"#)]
#[case(r#"{"input_tokens":1.5}"#)]
#[case(r#"{"input_tokens":"a dozen"}"#)]
#[case(r#"{"input_tokens":"-12"}"#)]
#[case(r#"{"input_tokens":""}"#)]
#[case(r#"{"input_tokens":1000000001}"#)]
#[case(r#"{"input_tokens":99999999999999999999999}"#)]
#[case(r#"{"input_tokens":1e400}"#)]
#[case(r#"{"input_tokens":1,"output_tokens":-0.5}"#)]
#[case(r#"{"input_tokens":1,"input_tokens":2}"#)]
#[case("[]")]
#[case("7")]
fn read_rejects_other_token_counts(#[case] text: &str) {
    assert_eq!(usage(text), Err(MalformedAnswer::Usage));
}

#[rstest]
#[case("")]
#[case("[]")]
#[case("null")]
#[case(r#"{"answers":{}"#)]
#[case(r#"{"answers":{"a":NaN}}"#)]
#[case(r#"{"answers":{}} trailing"#)]
#[case(r#"{"answers":{},"answers":{}}"#)]
#[case(r#"{"answers":{},"\u0061nswers":{}}"#)]
#[case(r#"{"answers":{},"usage":null,"usage":null}"#)]
#[case("<html></html>")]
#[case::half_a_character(r#"{"answers":{"a":"\ud800"}}"#)]
#[case::half_a_character(r#"{"answers":{"a":"x\udc00"}}"#)]
#[case::half_a_character(r#"{"answers":{"a":"\ud83d\n"}}"#)]
#[case::half_a_character(r#"{"answers":{"a":"\ud83d\ud83d\ude00"}}"#)]
#[case::half_an_escape(r#"{"answers":{"a":"\u12"}}"#)]
#[case::half_an_escape(r#"{"answers":{"a":"\"#)]
fn read_rejects_malformed_bodies(#[case] body: &str) {
    assert_eq!(read(body.as_bytes()).unwrap_err(), MalformedAnswer::NotOfItsForm);
}

#[rstest]
#[case("{}")]
#[case(r#"{"answers":null}"#)]
#[case(r#"{"answers":[]}"#)]
#[case(r#"{"answers":"{}"}"#)]
#[case(r#"{"error":"secret"}"#)]
fn read_rejects_answers_that_are_no_object(#[case] body: &str) {
    assert_eq!(read(body.as_bytes()).unwrap_err(), MalformedAnswer::NoAnswers);
}

#[test]
fn read_rejects_invalid_utf8_and_lone_surrogates() {
    assert_eq!(read(b"{\"answers\":{\"a\":\"\xff\"}}").unwrap_err(), MalformedAnswer::NotOfItsForm);
}

#[test]
fn read_accepts_escaped_and_plain_characters() {
    let answers = r#"{"a":"\ud83d\ude00 \u00e9 \\ud800 \"","\ud83D\uDE00":1}"#;
    assert_eq!(read(format!(r#"{{"answers":{answers}}}"#).as_bytes()).unwrap().answers.text(), answers);
}

#[test]
fn read_limits_nesting() {
    assert!(read(&nested(128)).is_ok());
    assert_eq!(read(&nested(129)).unwrap_err(), MalformedAnswer::TooDeep);
    assert_eq!(read(&nested(1_000_000)).unwrap_err(), MalformedAnswer::TooDeep);
    let brackets_in_a_string = format!(r#"{{"answers":{{"a":"\"{}"}}}}"#, "[".repeat(1000));
    assert!(read(brackets_in_a_string.as_bytes()).is_ok());
}

#[test]
fn read_reports_usage_when_answers_are_missing() {
    let bad = super::read(ResponseWrapper::None, br#"{"usage":{"input_tokens":7},"answers":[]}"#).unwrap_err();
    let usage = Some(ReportedUsage { input_tokens: 7, output_tokens: 0 });
    assert_eq!(bad, BadAnswer { error: MalformedAnswer::NoAnswers, usage });
}

#[rstest]
#[case(r#"{"success":true,"result":{"answers":{ "a":{"noul":0.1234} }},"errors":[],"messages":[]}"#)]
#[case(r#"{"result":{"answers":{ "a":{"noul":0.1234} },"usage":null}}"#)]
fn read_removes_wrapper(#[case] body: &str) {
    assert_eq!(enveloped(ResponseWrapper::WorkersAi, body).unwrap(), r#"{ "a":{"noul":0.1234} }"#);
}

#[rstest]
#[case(r#"{"answers":{}}"#)]
#[case(r#"{"result":null,"success":false,"errors":[]}"#)]
#[case(r#"{"result":{"answers":{}},"success":false}"#)]
#[case(r#"{"result":[],"success":true}"#)]
#[case(r#"{"result":{"answers":[]},"success":true}"#)]
fn read_rejects_wrapper_without_answers(#[case] body: &str) {
    assert_eq!(enveloped(ResponseWrapper::WorkersAi, body).unwrap_err().error, MalformedAnswer::NoAnswers);
    assert_eq!(enveloped(ResponseWrapper::Databricks, body).unwrap_err().error, MalformedAnswer::NoAnswers);
}

#[rstest]
#[case::renamed(r#"{"type":"noul","probability":0.90}"#, r#"{"type":"noul","noul":0.90}"#)]
#[case::right_already(r#"{"type":"noul","noul":0.9,"probability":1}"#, r#"{"type":"noul","noul":0.9,"probability":1}"#)]
#[case::of_another_type(r#"{"type":"choice","probability":1}"#, r#"{"type":"choice","probability":1}"#)]
#[case::no_object("7", "7")]
fn read_renames_probability_of_noul_answers(#[case] given: &str, #[case] expected: &str) {
    let body = format!(r#"{{"response":{{"answers":{{"b":{given},"a":{{}}}}}}}}"#);
    let read = enveloped(ResponseWrapper::Databricks, &body).unwrap();
    assert_eq!(read, format!(r#"{{"b":{expected},"a":{{}}}}"#));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        for response_wrapper in [ResponseWrapper::None, ResponseWrapper::WorkersAi, ResponseWrapper::Databricks] {
            let _ = super::read(response_wrapper, &body);
        }
    }

    #[test]
    fn any_near_answer_is_read_without_panic(
        body in r#"(\{|\}|\[|\]|"answers"|"usage"|"input_tokens"|:|,|-?[0-9]{1,30}|1e[0-9]{1,4}|"|\\|null|true| ){0,40}"#,
    ) {
        if let Ok(answer) = read(body.as_bytes()) {
            prop_assert!(body.contains(answer.answers.text()));
            prop_assert_eq!(answer.answers.kind(), JsonKind::Object);
        }
    }

    #[test]
    fn read_accepts_any_valid_answer(name in "\\PC{0,10}", input in 1_u64..=1_000_000_000, output in 0_u64..=1_000_000_000) {
        let answers = serde_json::json!({ name: {"type": "noul", "noul": 0.5} });
        let body = serde_json::json!({
            "model": "m", "answers": answers, "usage": {"input_tokens": input, "output_tokens": output}
        });
        let answer = read(body.to_string().as_bytes()).unwrap();
        prop_assert_eq!(answer.answers.text(), answers.to_string());
        prop_assert_eq!(answer.usage, Some(ReportedUsage { input_tokens: input, output_tokens: output }));
    }
}
