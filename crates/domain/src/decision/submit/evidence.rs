//! The evidence of the answers of a preset. Pure.

use std::borrow::Cow;

use super::outcome::{CallOutcome, SubRequestOutcome};
use super::request::Request;
use super::staged::StagedAnswer;
use crate::json::{Json, ObjectWriter};
use crate::question::{Answer, AnswerValue, Question, QuestionKind};
use crate::routing::Candidate;
use crate::statistics::Decision;
use crate::usage::AnswerEvidence;

/// Returns the evidence of the answers of a call, if the request names a preset. An answer without a decision has none.
pub(super) fn collect_evidence(request: &Request, call: &CallOutcome) -> Vec<AnswerEvidence> {
    let (Some(_), Some(sent), Some(original)) =
        (request.body.preset, &request.body.provider_input.questions.typed, &request.filtered.original.questions.typed)
    else {
        return Vec::new();
    };
    if let Some(staged) = &call.staged {
        // One row a question: of the answer that is returned.
        let rows = (0..).zip(original.iter()).zip(staged).filter_map(|((position, question), staged)| {
            let StagedAnswer { answer, candidate, .. } = staged.as_ref()?;
            evidence(position, question, answer, candidate)
        });
        return rows.collect();
    }
    let mut collected = Vec::with_capacity(original.len());
    for outcome in &call.outcomes {
        let SubRequestOutcome::Answered { answers, candidate } = outcome else { continue };
        // A sub-request has the questions in their order.
        let mut questions = (0..).zip(sent.iter().zip(original.iter()));
        for answer in answers.typed().unwrap_or_default() {
            let asked = questions.find(|(_, (sent, _))| sent.name == answer.name);
            collected
                .extend(asked.and_then(|(position, (_, question))| evidence(position, question, answer, candidate)));
        }
    }
    collected
}

fn evidence(position: u32, question: &Question, answer: &Answer, candidate: &Candidate) -> Option<AnswerEvidence> {
    Some(AnswerEvidence {
        position,
        question: question.name.clone(),
        model: candidate.model.clone(),
        provider: candidate.endpoint.provider.to_shared(),
        wire: Cow::Borrowed(candidate.endpoint.wire.as_str()),
        method: candidate.endpoint.wire.method_of(&answer.json),
        decision: Decision::from_answer(&answer.value)?.to_label(&question.kind)?,
        probabilities: probabilities(question, &answer.value),
    })
}

/// Returns the largest probabilities of an answer by the names of options or the numbers of levels.
fn probabilities(question: &Question, answer: &AnswerValue) -> Option<Json> {
    let numbers = match answer {
        AnswerValue::Noul { probability } => {
            return Some(ObjectWriter::new().shown("true", probability).finish());
        }
        AnswerValue::Choice { probabilities, .. } | AnswerValue::Score { probabilities, .. } => {
            probabilities.as_deref()?
        }
        AnswerValue::Box | AnswerValue::Refusal | AnswerValue::Unanswered(_) => return None,
    };
    let mut largest: Vec<(usize, f64)> = numbers.iter().copied().enumerate().collect();
    largest.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    largest.truncate(AnswerEvidence::MAX_PROBABILITIES);
    let mut object = ObjectWriter::new();
    for (index, number) in largest {
        let name = match &question.kind {
            QuestionKind::Choice { options } => Cow::Borrowed(options.get(index)?.name.as_str()),
            _ => Cow::Owned(index.to_string()),
        };
        object = object.shown(&name, number);
    }
    Some(object.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::PresetConfig;
    use crate::statistics::largest_probability;
    use rstest::rstest;

    /// The score of evidence is computed when it is read: it equals that which a stage compared.
    #[rstest]
    #[case::yes(AnswerValue::Noul { probability: 0.93 })]
    #[case::no(AnswerValue::Noul { probability: 0.07 })]
    #[case::even(AnswerValue::Noul { probability: 0.5 })]
    #[case::tiny(AnswerValue::Noul { probability: 1e-17 })]
    #[case::digits(AnswerValue::Noul { probability: 0.1 + 0.2 })]
    #[case::choice(AnswerValue::Choice { chosen: 1, probabilities: Some(vec![0.3, 0.7]), confidence: None })]
    #[case::level(AnswerValue::Score { score: 1.3, probabilities: Some(vec![0.1, 0.5, 0.4]), confidence: None })]
    #[case::low_level(AnswerValue::Score { score: 0.0, probabilities: Some(vec![0.2; 5]), confidence: None })]
    #[case::chosen_alone(AnswerValue::Choice { chosen: 0, probabilities: None, confidence: None })]
    fn score_of_evidence_is_that_of_the_answer(#[case] value: AnswerValue) {
        let kind = match &value {
            AnswerValue::Choice { .. } => r#"{"type":"choice","instructions":"?","criteria":{"true":null,"no":null}}"#,
            AnswerValue::Score { .. } => r#"{"type":"score","instructions":"?","criteria":["0","1","2","3","4"]}"#,
            _ => r#"{"type":"noul","instructions":"?"}"#,
        };
        let config = Json::parse(&format!(r#"{{"model":"acme/judge","questions":{{"q":{kind}}}}}"#)).unwrap();
        let question = PresetConfig::read(&config).unwrap().questions.typed.unwrap()[0].clone();
        let evidence = AnswerEvidence {
            position: 0,
            question: "q".to_owned(),
            model: "acme/judge".parse().unwrap(),
            provider: "acme".into(),
            wire: "system-one".into(),
            method: crate::usage::AnswerMethod::Native,
            decision: Decision::from_answer(&value).unwrap().to_label(&question.kind).unwrap(),
            probabilities: probabilities(&question, &value),
        };
        assert_eq!(evidence.score(), largest_probability(&value));
    }
}
