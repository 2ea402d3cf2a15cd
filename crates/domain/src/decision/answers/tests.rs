use super::*;
use crate::decision::DecisionDraft;
use rstest::rstest;

const RULES: AnswerRules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };

fn questions() -> Questions {
    let json = r#"{"n":{"type":"noul","instructions":"?"},"c":{"type":"choice","criteria":{"x":null,"y":null}},"s":{"type":"score","criteria":["a","b"]}}"#;
    let draft = DecisionDraft {
        model: Json::parse("\"m\"").ok(),
        questions: Json::parse(json).ok(),
        state: Json::parse("\"s\"").ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap().inquiry.questions.clone()
}

fn check(answers: &str) -> Result<Answers, &'static str> {
    Answers::check(&questions(), &Json::parse(answers).unwrap(), RULES)
}

const N: &str = r#""n":{"type":"noul","noul":0.5}"#;
const C: &str = r#""c":{"type":"choice","choice":"y","confidence":0.2,"probabilities":{"x":0.4,"y":0.6}}"#;
const S: &str = r#""s":{"type":"score","score":1}"#;

#[test]
fn answers_pass_in_any_order_and_leave_in_that_of_the_questions() {
    let as_it_came = format!("{{ {N}, {C},{S}}}");
    assert_eq!(check(&as_it_came).unwrap().json().text(), as_it_came);
    assert_eq!(check(&format!("{{{S},{N},{C}}}")).unwrap().json().text(), format!("{{{N},{C},{S}}}"));
}

#[rstest]
#[case::array("[]".to_owned())]
#[case::missing(format!("{{{N},{C}}}"))]
#[case::not_asked(format!(r#"{{{N},{C},"other":{{"type":"noul","noul":1}}}}"#))]
#[case::one_more(format!(r#"{{{N},{C},{S},"other":{{"type":"noul","noul":1}}}}"#))]
#[case::twice(format!("{{{N},{C},{C}}}"))]
#[case::other_type(format!(r#"{{{N},{C},"s":{{"type":"noul","noul":1}}}}"#))]
#[case::off_scale(format!(r#"{{{N},{C},"s":{{"type":"score","score":1.01}}}}"#))]
#[case::beyond_range(format!(r#"{{"n":{{"type":"noul","noul":1e999}},{C},{S}}}"#))]
#[case::not_a_number(format!(r#"{{"n":{{"type":"noul","noul":"0.5"}},{C},{S}}}"#))]
#[case::no_option(format!(r#"{{{N},"c":{{"type":"choice","choice":"z"}},{S}}}"#))]
fn anything_else_does_not(#[case] answers: String) {
    assert!(check(&answers).is_err());
}
