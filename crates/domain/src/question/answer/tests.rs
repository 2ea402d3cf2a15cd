use super::*;
use crate::decision::DecisionDraft;
use rstest::rstest;

mod confidence;
mod merging;
mod properties;
mod violations;

const RULES: AnswerRules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };
const COMPUTED: AnswerRules = AnswerRules { confidence: ConfidenceSource::Computed, ..RULES };
const NATIVE: AnswerRules = AnswerRules { confidence: ConfidenceSource::Native, ..RULES };

fn read(json: &str) -> Questions {
    let draft = DecisionDraft {
        model: Json::parse("\"m\"").ok(),
        questions: Json::parse(json).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap().provider_input.questions.clone()
}

/// Returns a question of each type: `n`, `c` with the options x, y and z, `s` with three levels, and `b`.
fn each_type() -> Questions {
    read(
        r#"{"n":{"type":"noul","instructions":"?"},"c":{"type":"choice","criteria":{"x":null,"y":null,"z":null}},
            "s":{"type":"score","criteria":["a","b","c"]},"b":{"type":"box","instructions":"?"}}"#,
    )
}

/// Returns only the question of this name in [`each_type`].
fn only(name: &str) -> Questions {
    let typed = each_type().typed.unwrap();
    Questions::from_typed(typed.iter().filter(|question| question.name == name).cloned().collect())
}

/// Checks one answer to the question of this name.
fn check_one(name: &str, answer: &str, rules: AnswerRules) -> Result<Answers, &'static str> {
    Answers::check(&only(name), &Json::parse(&format!("{{\"{name}\":{answer}}}")).unwrap(), rules)
}

fn value_of(answers: Answers) -> AnswerValue {
    answers.typed.unwrap().remove(0).value
}

const N: &str = r#""n":{"type":"noul","noul":0.5}"#;
const C: &str = r#""c":{"type":"choice","choice":"y","confidence":0.4,"probabilities":{"x":0.3,"y":0.6,"z":0.1}}"#;
const S: &str = r#""s":{"type":"score","score":1}"#;
const B: &str = r#""b":{"type":"box","box":{"left":0,"top":0.5,"right":1,"bottom":0.5}}"#;

fn check(answers: &str) -> Result<Answers, &'static str> {
    Answers::check(&each_type(), &Json::parse(answers).unwrap(), RULES)
}

#[test]
fn check_returns_answers_in_order_of_questions() {
    let as_it_came = format!("{{ {N}, {C},{S} , {B}}}");
    assert_eq!(check(&as_it_came).unwrap().json().text(), as_it_came);
    assert_eq!(check(&format!("{{{S},{N},{B},{C}}}")).unwrap().json().text(), format!("{{{N},{C},{S},{B}}}"));
}

#[test]
fn check_reads_answer_values() {
    let answers = check(&format!("{{{N},{C},{S},{B}}}")).unwrap();
    let [noul, choice, score, rectangle] = answers.typed().unwrap() else { panic!("four answers") };
    assert_eq!(noul.value, AnswerValue::Noul { probability: 0.5 });
    let probabilities = Some(vec![0.3, 0.6, 0.1]);
    assert_eq!(choice.value, AnswerValue::Choice { chosen: 1, probabilities, confidence: Some(0.4) });
    assert_eq!(score.value, AnswerValue::Score { score: 1.0, probabilities: None, confidence: None });
    assert_eq!((rectangle.name.as_str(), &rectangle.value), ("b", &AnswerValue::Box));
    assert_eq!(rectangle.json.text(), B.split_once(':').unwrap().1);
}

#[test]
fn check_accepts_any_object_for_opaque_questions() {
    let opaque = Questions { json: Json::parse("\"?\"").unwrap(), typed: None };
    let odd = Json::parse(r#"{ "a":1e999,"a":2 }"#).unwrap();
    let answers = Answers::check(&opaque, &odd, COMPUTED).unwrap();
    assert_eq!((answers.json(), answers.typed()), (&odd, None));
    assert!(Answers::check(&opaque, &Json::parse("[]").unwrap(), RULES).is_err());
}

#[rstest]
#[case::noul("n")]
#[case::choice("c")]
#[case::score("s")]
#[case::box_("b")]
fn check_accepts_refusal_of_each_question(#[case] name: &str) {
    let text = r#"{"type":"refusal","why":"policy"}"#;
    for rules in [RULES, COMPUTED, NATIVE] {
        let answers = check_one(name, text, rules).unwrap();
        assert_eq!(answers.json().text(), format!("{{\"{name}\":{text}}}"));
        assert_eq!(value_of(answers), AnswerValue::Refusal);
    }
    let refused = format!(r#""{name}":{{"type":"refusal"}}"#);
    let all: Vec<&str> = [N, C, S, B].into_iter().map(|one| if one[1..2] == *name { &refused } else { one }).collect();
    assert!(check(&format!("{{{}}}", all.join(","))).is_ok(), "the rest is answered");
}

/// Many questions with many options, out of order: slow if anything is quadratic.
#[test]
fn check_of_large_answers_is_linear() {
    let names = |count: usize| (0..count).map(|number| format!("option {number}"));
    let criteria: Vec<String> = names(255).map(|name| format!("\"{name}\":null")).collect();
    let question = format!(r#"{{"type":"choice","criteria":{{{}}}}}"#, criteria.join(","));
    let probabilities: Vec<String> = names(255).map(|name| format!("\"{name}\":{}", 1.0 / 255.0)).rev().collect();
    let answer =
        format!(r#"{{"probabilities":{{{}}},"choice":"option 254","type":"choice"}}"#, probabilities.join(","));
    let all = |one: &str| (0..400).map(|number| format!("\"q{number}\":{one}")).rev().collect::<Vec<_>>().join(",");
    let questions = read(&format!("{{{}}}", all(&question)));
    let answers = Json::parse(&format!("{{{}}}", all(&answer))).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test measures itself")]
    let start = std::time::Instant::now();
    let checked = Answers::check(&questions, &answers, COMPUTED).unwrap();
    let many: Vec<String> = (0..100_000).map(|number| format!("\"m{number}\":0")).collect();
    let crowded = format!(r#"{{"type":"noul","noul":1,{}}}"#, many.join(","));
    assert!(check_one("n", &crowded, COMPUTED).is_ok());
    assert!(checked.json().text().ends_with("}}"));
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "quadratic, it would take minutes");
}
