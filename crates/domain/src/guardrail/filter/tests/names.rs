//! Redacted names of questions and options, and their restoration.

use super::*;
use crate::error::ErrorKind;
use crate::question::{AnswerRules, AnswerValue, Answers, ConfidenceSource, QuestionKind};
use FilterAction::Redact;

const RULES: AnswerRules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };

const QUESTIONS: &str = r#"{
    "is a@b.cc spam":{"type":"noul","instructions":"?"},
    "who":{"type":"choice","criteria":{"a@b.cc":"first","c@d.ee":null,"nobody":null}},
    "e@f.gg":{"type":"score","criteria":["low","high"]},
    "plain":{"type":"noul","instructions":"?"}}"#;

fn filtered(filters: &CompiledFilters, questions: &str) -> (Arc<ProviderInput>, FilteredInput) {
    let asked = provider_input("\"s\"", questions);
    let filtered = filters.apply(&asked).unwrap();
    (asked, filtered)
}

fn answered(sent: &ProviderInput, answers: &str) -> Answers {
    Answers::check(&sent.questions, &Json::parse(answers).unwrap(), RULES).unwrap()
}

#[test]
fn redacted_typed_questions_equal_their_json() {
    let (_, filtered) = filtered(&all(Redact), QUESTIONS);
    let questions = &filtered.provider_input.questions;
    let typed = questions.typed.as_ref().unwrap();
    let names: Vec<&str> = typed.iter().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["is [EMAIL] spam", "who", "[EMAIL]", "plain"]);
    let QuestionKind::Choice { options } = &typed[1].kind else { panic!("no choice") };
    let options: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(options, ["[EMAIL]", "[EMAIL] 2", "nobody"]);
    let json: Vec<(String, Json)> =
        typed.iter().map(|question| (question.name.clone(), question.json.clone())).collect();
    assert_eq!(questions.json.members().unwrap(), json);
}

#[test]
fn restore_returns_original_names() {
    let (asked, filtered) = filtered(&all(Redact), QUESTIONS);
    assert!(!filtered.aliases.is_empty());
    let answers = answered(
        &filtered.provider_input,
        r#"{"plain":{"type":"noul","noul":0.50},"[EMAIL]":{"type":"score","score":1,"probabilities":{"0":0.0,"1":1.0}},
            "who":{"type":"choice","choice":"[EMAIL] 2","note":"[EMAIL]","probabilities":{"nobody":0.1,"[EMAIL] 2":0.70,"[EMAIL]":0.2}},
            "is [EMAIL] spam":{"type":"noul","noul":1}}"#,
    );
    let restored = filtered.aliases.restore(answers, &asked);
    let expected = concat!(
        r#"{"is a@b.cc spam":{"type":"noul","noul":1},"#,
        r#""who":{"type":"choice","choice":"c@d.ee","note":"[EMAIL]","probabilities":{"nobody":0.1,"c@d.ee":0.70,"a@b.cc":0.2}},"#,
        r#""e@f.gg":{"type":"score","score":1,"probabilities":{"0":0.0,"1":1.0}},"plain":{"type":"noul","noul":0.50}}"#
    );
    assert_eq!(restored.json().text(), expected);
    // The restored answers are valid for the original questions and have the same values.
    let checked = answered(&asked, expected);
    assert_eq!(checked.typed(), restored.typed());
    let AnswerValue::Choice { chosen, .. } = restored.typed().unwrap()[1].value else { panic!("no choice") };
    assert_eq!(chosen, 1);
}

#[test]
fn restore_renames_refusals_and_missing_answers() {
    let (asked, filtered) = filtered(&all(Redact), QUESTIONS);
    let sent = filtered.provider_input.questions.typed.as_ref().unwrap();
    let part = filtered.provider_input.with_questions(vec![sent[1].clone()]);
    let refused = answered(&part, r#"{"who":{"type":"refusal"}}"#);
    let merged = Answers::merge(sent, vec![refused], ErrorKind::TimedOut);
    let restored = filtered.aliases.restore(merged, &asked);
    let names: Vec<String> = restored.json().members().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["is a@b.cc spam", "who", "e@f.gg", "plain"]);
    assert_eq!(restored.typed().unwrap()[1].value, AnswerValue::Refusal);
}

#[test]
fn redaction_keeps_boolean_options() {
    let (mut asked, _) =
        filtered(&all(Redact), r#"{"q":{"type":"choice","criteria":{"true":"is true","false":null,"a@b.cc":null}}}"#);
    let typed = Arc::make_mut(&mut asked).questions.typed.as_mut().map(Arc::make_mut).unwrap();
    let QuestionKind::Choice { options } = &mut typed[0].kind else { panic!("no choice") };
    (options[0].boolean, options[1].boolean) = (Some(true), Some(false));
    let filters = super::filters(&[(BuiltinFilter::Email, Redact)], &[("true", Redact, Some("X"))]);
    let filtered = filters.apply(&asked).unwrap();
    let QuestionKind::Choice { options } = &filtered.provider_input.questions.typed.as_ref().unwrap()[0].kind else {
        panic!("no choice")
    };
    let shown: Vec<(&str, Option<bool>)> =
        options.iter().map(|option| (option.name.as_str(), option.boolean)).collect();
    assert_eq!(shown, [("[X]", Some(true)), ("false", Some(false)), ("[EMAIL]", None)]);
    let answers = answered(&filtered.provider_input, r#"{"q":{"type":"choice","choice":"[X]"}}"#);
    let restored = filtered.aliases.restore(answers, &asked);
    assert_eq!(restored.json().text(), r#"{"q":{"type":"choice","choice":"true"}}"#);
}

#[test]
fn restore_renames_opaque_answers() {
    let (asked, filtered) = filtered(&all(Redact), r#"{"a@b.cc":{"ask":"?"},"c@d.ee":1,"plain":2}"#);
    let answers =
        answered(&filtered.provider_input, r#"{"plain":0,"[EMAIL] 2":{"[EMAIL]":1.0},"[EMAIL]":"x","other":null}"#);
    let restored = filtered.aliases.restore(answers, &asked);
    assert_eq!(restored.json().text(), r#"{"plain":0,"c@d.ee":{"[EMAIL]":1.0},"a@b.cc":"x","other":null}"#);
}

#[test]
fn restore_keeps_answers_without_aliases() {
    let (asked, filtered) = filtered(&all(Redact), r#"{"q":{"type":"noul","instructions":"is a@b.cc spam?"}}"#);
    assert!(filtered.aliases.is_empty());
    let as_it_came = r#"{ "q" : {"type":"noul","noul":0.10} }"#;
    let restored = filtered.aliases.restore(answered(&filtered.provider_input, as_it_came), &asked);
    assert_eq!(restored.json().text(), as_it_came);
}

#[test]
fn aliases_hold_no_redacted_names() {
    let (_, filtered) = filtered(&all(Redact), QUESTIONS);
    let shown = format!("{:?}", filtered.aliases);
    assert!(!shown.contains("b.cc") && !shown.contains("f.gg"), "{shown}");
}
