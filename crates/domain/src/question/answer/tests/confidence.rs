//! One meaning of `confidence`.

use super::*;

const CHOICE: &str = r#"{"type":"choice","choice":"x","confidence":0.9,"probabilities":{"x":0.74,"y":0.24,"z":0.02}}"#;
const SCORE: &str = r#"{"confidence":0.9,"type":"score","score":1.32,"probabilities":{"0":0.06,"1":0.56,"2":0.38}}"#;

#[test]
fn it_is_computed_and_the_provider_s_own_is_kept() {
    let answers = check_one("c", CHOICE, COMPUTED).unwrap();
    let expected = r#"{"c":{"type":"choice","choice":"x","probabilities":{"x":0.74,"y":0.24,"z":0.02},"confidence":0.61,"native_confidence":0.9}}"#;
    assert_eq!(answers.json().text(), expected);
    let AnswerValue::Choice { confidence: Some(confidence), .. } = value_of(answers) else { panic!("a choice") };
    assert!((confidence - 0.61).abs() < 1e-9);

    let answers = check_one("s", SCORE, COMPUTED).unwrap();
    // 1 - 0.44 / (2/3)
    let expected = r#"{"s":{"type":"score","score":1.32,"probabilities":{"0":0.06,"1":0.56,"2":0.38},"confidence":0.34,"native_confidence":0.9}}"#;
    assert_eq!(answers.json().text(), expected);
}

#[test]
fn a_native_number_is_kept_as_it_was_written() {
    let written = CHOICE.replace("0.9", "9.0e-1");
    assert!(check_one("c", &written, COMPUTED).unwrap().json().text().ends_with(r#""native_confidence":9.0e-1}}"#));
}

#[rstest]
#[case(RULES)]
#[case(NATIVE)]
fn where_it_is_the_provider_s_nothing_is_touched(#[case] rules: AnswerRules) {
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
fn a_noul_gets_none() {
    let plain = r#"{"type":"noul","noul":0.5}"#;
    assert_eq!(check_one("n", plain, COMPUTED).unwrap().json().text(), format!("{{\"n\":{plain}}}"));
    let answers = check_one("n", r#"{"type":"noul","noul":0.5,"confidence":0.9}"#, COMPUTED).unwrap();
    assert_eq!(answers.json().text(), r#"{"n":{"type":"noul","noul":0.5,"native_confidence":0.9}}"#);
}

#[test]
fn without_a_distribution_there_is_none_of_ours() {
    let answers = check_one("c", r#"{"type":"choice","choice":"x","confidence":0.9}"#, COMPUTED).unwrap();
    assert_eq!(answers.json().text(), r#"{"c":{"type":"choice","choice":"x","native_confidence":0.9}}"#);
    assert!(matches!(value_of(answers), AnswerValue::Choice { confidence: None, .. }));
}

#[test]
fn a_claim_to_be_the_native_one_is_not_believed() {
    let forged = CHOICE.replace("\"type\"", "\"native_confidence\":1,\"type\"");
    let text = check_one("c", &forged, COMPUTED).unwrap().json().text().to_owned();
    assert_eq!(text.matches("native_confidence").count(), 1);
    assert!(text.ends_with(r#""native_confidence":0.9}}"#));
}

#[test]
fn what_does_not_change_leaves_byte_for_byte() {
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
fn it_is_written_to_four_decimals(#[case] number: f64, #[case] expected: &str) {
    assert_eq!(rounded(number), expected);
}
