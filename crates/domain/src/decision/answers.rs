//! What a provider returns is checked before it is believed.

use std::collections::HashMap;

use super::{Question, QuestionKind, Questions};
use crate::json::{Json, JsonKind};

/// Checks answers against what was asked.
///
/// Answers are an object. To typed questions it has exactly the names that were asked, each once, each an object of
/// the question's type; `noul` lies between 0 and 1, `choice` is one of the options, `score` lies on the scale.
///
/// # Errors
/// A sentence of our own, without a word of the provider's.
pub fn check_answers(questions: &Questions, answers: &Json) -> Result<(), &'static str> {
    let members = answers.members().ok_or("the answers are no object")?;
    let Some(typed) = &questions.typed else { return Ok(()) };
    if members.len() != typed.len() {
        return Err("the answers are not to the questions that were asked");
    }
    let by_name: HashMap<&str, &Json> = members.iter().map(|(name, answer)| (name.as_str(), answer)).collect();
    typed.iter().try_for_each(|question| {
        let answer =
            by_name.get(question.name.as_str()).ok_or("the answers are not to the questions that were asked")?;
        check_answer(question, answer)
    })
}

fn check_answer(question: &Question, answer: &Json) -> Result<(), &'static str> {
    let members = answer.members().ok_or("an answer is no object")?;
    let member = |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, json)| json);
    if member("type").and_then(Json::as_string).as_deref() != Some(question.kind.as_str()) {
        return Err("an answer is of another type than its question");
    }
    let number = |name: &str| member(name).and_then(Json::as_f64);
    match &question.kind {
        QuestionKind::Noul { .. } => {
            number("noul").filter(|p| (0.0..=1.0).contains(p)).ok_or("a noul answer is no probability")?;
        }
        QuestionKind::Choice { options } => {
            let chosen = member("choice").and_then(Json::as_string).ok_or("a choice answer names no option")?;
            options.iter().find(|(name, _)| *name == chosen).ok_or("a choice answer is none of the options")?;
        }
        QuestionKind::Score { levels } => {
            // The scale has at most ten levels.
            #[expect(clippy::cast_precision_loss, reason = "a scale has at most ten levels")]
            let top = (levels.len() - 1) as f64;
            number("score").filter(|score| (0.0..=top).contains(score)).ok_or("a score answer is off the scale")?;
        }
    }
    for optional in ["confidence", "probabilities"] {
        let kind = member(optional).map(Json::kind);
        let fits = match optional {
            "confidence" => matches!(kind, None | Some(JsonKind::Number | JsonKind::Null)),
            _ => matches!(kind, None | Some(JsonKind::Object | JsonKind::Null)),
        };
        if !fits {
            return Err("an answer's confidence or probabilities are malformed");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::DecisionDraft;
    use rstest::rstest;

    fn questions() -> Questions {
        let json = r#"{"n":{"type":"noul","instructions":"?"},"c":{"type":"choice","criteria":{"x":null,"y":null}},"s":{"type":"score","criteria":["a","b"]}}"#;
        let draft = DecisionDraft {
            model: Json::parse("\"m\"").ok(),
            questions: Json::parse(json).ok(),
            state: Json::parse("\"s\"").ok(),
            ..DecisionDraft::default()
        };
        draft.check().unwrap().questions
    }

    fn check(answers: &str) -> Result<(), &'static str> {
        check_answers(&questions(), &Json::parse(answers).unwrap())
    }

    const N: &str = r#""n":{"type":"noul","noul":0.5}"#;
    const C: &str = r#""c":{"type":"choice","choice":"y","confidence":0.2,"probabilities":{"x":0.4,"y":0.6}}"#;
    const S: &str = r#""s":{"type":"score","score":1}"#;

    #[test]
    fn answers_to_what_was_asked_pass_in_any_order() {
        assert_eq!(check(&format!("{{{S},{N},{C}}}")), Ok(()));
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
}
