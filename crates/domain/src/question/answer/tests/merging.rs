//! Tests of merging the answers of sub-requests.

use super::*;

fn part(name: &str, answer: &str) -> Answers {
    check_one(name, answer, RULES).unwrap()
}

#[test]
fn merge_returns_answers_in_order_of_questions() {
    let parts = vec![
        part("s", r#"{"type":"score","score":1.0}"#),
        part("n", r#"{"type":"noul","noul":0.50}"#),
        part("c", r#"{"type":"refusal"}"#),
    ];
    let merged = Answers::merge(&each_type().typed.unwrap(), parts, ErrorKind::TimedOut);
    let expected = r#"{"n":{"type":"noul","noul":0.50},"c":{"type":"refusal"},"s":{"type":"score","score":1.0},"b":{"type":"error","error":"timed_out"}}"#;
    assert_eq!(merged.json().text(), expected);
    let values: Vec<&AnswerValue> = merged.typed().unwrap().iter().map(|answer| &answer.value).collect();
    assert_eq!(
        values[1..],
        [
            &AnswerValue::Refusal,
            &AnswerValue::Score { score: 1.0, probabilities: None, confidence: None },
            &AnswerValue::Unanswered(ErrorKind::TimedOut),
        ]
    );
}

#[test]
fn merge_keeps_reason_of_each_missing_answer() {
    let lost = Answers::unanswered(only("c").typed.as_deref().unwrap(), ErrorKind::ProviderOverloaded);
    let merged = Answers::merge(&each_type().typed.unwrap(), vec![lost], ErrorKind::TimedOut);
    assert!(merged.json().text().contains(r#""c":{"type":"error","error":"provider_overloaded"}"#));
    assert_eq!(merged.json().text().matches("timed_out").count(), 3);
}

#[test]
fn merge_escapes_names() {
    let odd = read(r#"{"a\"\\\u0001":{"type":"noul","instructions":"?"}}"#);
    let merged = Answers::merge(odd.typed.as_deref().unwrap(), Vec::new(), ErrorKind::TimedOut);
    let members = merged.json().members().unwrap();
    assert_eq!(members[0].0, "a\"\\\u{1}");
}
