//! Tests of the computed confidence.

use super::*;

const CHOICE: &str = r#"{"type":"choice","choice":"x","confidence":0.9,"probabilities":{"x":0.74,"y":0.24,"z":0.02}}"#;
const SCORE: &str = r#"{"confidence":0.9,"type":"score","score":1.32,"probabilities":{"0":0.06,"1":0.56,"2":0.38}}"#;

#[test]
fn check_computes_confidence_and_keeps_native_confidence() {
    let answers = check_one("c", CHOICE, COMPUTED).unwrap();
    let expected = r#"{"c":{"type":"choice","choice":"x","probabilities":{"x":0.74,"y":0.24,"z":0.02},"confidence":0.61,"native_confidence":0.9}}"#;
    assert_eq!(answers.json().text(), expected);
    let AnswerValue::Choice { confidence: Some(confidence), .. } = value_of(answers) else { panic!("a choice") };
    assert_eq!(confidence.to_string(), "0.61", "every format of clients writes it");

    let answers = check_one("s", SCORE, COMPUTED).unwrap();
    // 1 - 0.44 / (2/3)
    let expected = r#"{"s":{"type":"score","score":1.32,"probabilities":{"0":0.06,"1":0.56,"2":0.38},"confidence":0.34,"native_confidence":0.9}}"#;
    assert_eq!(answers.json().text(), expected);
}

#[test]
fn native_confidence_keeps_its_notation() {
    let written = CHOICE.replace("0.9", "9.0e-1");
    assert!(check_one("c", &written, COMPUTED).unwrap().json().text().ends_with(r#""native_confidence":9.0e-1}}"#));
}

#[rstest]
#[case(RULES)]
#[case(NATIVE)]
fn check_keeps_answers_when_confidence_is_from_provider(#[case] rules: AnswerRules) {
    for (name, answer) in [("c", CHOICE), ("s", SCORE), ("n", r#"{"type":"noul","noul":0.5,"confidence":0.1}"#)] {
        let answers = check_one(name, answer, rules).unwrap();
        assert_eq!(answers.json().text(), format!("{{\"{name}\":{answer}}}"));
    }
    let AnswerValue::Choice { confidence, .. } = value_of(check_one("c", CHOICE, rules).unwrap()) else {
        panic!("a choice")
    };
    assert_eq!(confidence, Some(0.9));
}

#[test]
fn check_computes_no_confidence_for_noul() {
    let plain = r#"{"type":"noul","noul":0.5}"#;
    assert_eq!(check_one("n", plain, COMPUTED).unwrap().json().text(), format!("{{\"n\":{plain}}}"));
    let answers = check_one("n", r#"{"type":"noul","noul":0.5,"confidence":0.9}"#, COMPUTED).unwrap();
    assert_eq!(answers.json().text(), r#"{"n":{"type":"noul","noul":0.5,"native_confidence":0.9}}"#);
}

#[test]
fn check_computes_no_confidence_without_distribution() {
    let answers = check_one("c", r#"{"type":"choice","choice":"x","confidence":0.9}"#, COMPUTED).unwrap();
    assert_eq!(answers.json().text(), r#"{"c":{"type":"choice","choice":"x","native_confidence":0.9}}"#);
    assert!(matches!(value_of(answers), AnswerValue::Choice { confidence: None, .. }));
}

#[test]
fn check_overwrites_forged_native_confidence() {
    let forged = CHOICE.replace("\"type\"", "\"native_confidence\":1,\"type\"");
    let text = check_one("c", &forged, COMPUTED).unwrap().json().text().to_owned();
    assert_eq!(text.matches("native_confidence").count(), 1);
    assert!(text.ends_with(r#""native_confidence":0.9}}"#));
}

#[test]
fn check_keeps_unchanged_answers_byte_for_byte() {
    let as_it_came = r#"{ "n" : {"type":"noul", "noul":0.50} }"#;
    let answers = Answers::check(&only("n"), &Json::parse(as_it_came).unwrap(), COMPUTED).unwrap();
    assert_eq!(answers.json().text(), as_it_came);
    let boxed = format!("{{ {B} }}");
    let answers = Answers::check(&only("b"), &Json::parse(&boxed).unwrap(), COMPUTED).unwrap();
    assert_eq!(answers.json().text(), boxed);
    let refused = r#"{ "c":{"type":"refusal"}}"#;
    let answers = Answers::check(&only("c"), &Json::parse(refused).unwrap(), COMPUTED).unwrap();
    assert_eq!(answers.json().text(), refused);
}

#[rstest]
#[case(0.0, "0")]
#[case(1.0, "1")]
#[case(0.1, "0.1")]
#[case(0.333_333, "0.3333")]
#[case(0.999_96, "1")]
#[case(0.000_04, "0")]
fn rounded_writes_at_most_four_decimals(#[case] number: f64, #[case] expected: &str) {
    assert_eq!(rounded(number), expected);
}
