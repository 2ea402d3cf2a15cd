//! Answers to generated requests. The tests of `api-actix` include this file too.

use std::sync::Arc;

use domain::decision::{AnswerRules, Answers, Decision, DecisionRequest, Question, QuestionKind};
use domain::json::Json;
use domain::routing::ConfidenceSource;
use domain::usage::UsageSource;
use wires::client::DecisionResponse;
use wires::formats::{ParsedRequest, write};

/// Returns a decision on that request with those answers, in canonical form.
pub fn decision(request: &DecisionRequest, answers: &Json) -> Decision {
    let rules = AnswerRules { decimals: 2, confidence: ConfidenceSource::SystemOne };
    Decision {
        id: "gen-dec-1".parse().unwrap(),
        provider_input: Arc::clone(&request.provider_input),
        answers: Answers::check(&request.provider_input.questions, answers, rules).unwrap(),
        model: "acme/judge".parse().unwrap(),
        provider: "Acme".to_owned(),
        input_tokens: 140,
        output_tokens: 2,
        usage_source: UsageSource::Reported,
        cost: "0.00000588".parse().unwrap(),
        attempts: Arc::default(),
        funnel: Vec::new(),
        findings: Vec::new(),
    }
}

/// Returns the response body of the request.
pub fn body(asked: &ParsedRequest, request: &DecisionRequest, answers: &Json) -> String {
    let decision = decision(request, answers);
    let questions = request.provider_input.questions.typed.as_deref().unwrap_or_default();
    write(&asked.response_format, &DecisionResponse { decision: &decision, questions, service_metadata: None })
}

/// Returns an answer to each question, in canonical form; `seed` selects the option or level.
pub fn answers_to(questions: &[Question], seed: usize) -> Json {
    let one = |question: &Question| match &question.kind {
        _ if seed % 7 == 6 => r#"{"type":"refusal"}"#.to_owned(),
        QuestionKind::Noul { .. } => r#"{"type":"noul","noul":0.25}"#.to_owned(),
        QuestionKind::Choice { options } => {
            let chosen = seed % options.len();
            let name = |index: usize| Json::string(&options[index].name).text().to_owned();
            let p = |index: usize| format!("{}:{}", name(index), u8::from(index == chosen));
            let distribution: Vec<String> = (0..options.len()).map(p).collect();
            format!(r#"{{"type":"choice","choice":{},"probabilities":{{{}}}}}"#, name(chosen), distribution.join(","))
        }
        QuestionKind::Score { levels } => {
            let chosen = seed % levels.len();
            let p = |index: usize| format!(r#""{index}":{}"#, u8::from(index == chosen));
            let distribution: Vec<String> = (0..levels.len()).map(p).collect();
            format!(r#"{{"type":"score","score":{chosen},"probabilities":{{{}}}}}"#, distribution.join(","))
        }
        QuestionKind::Box => r#"{"type":"box","box":{"top":0,"bottom":1,"left":0,"right":1}}"#.to_owned(),
    };
    let answers: Vec<String> = questions.iter().map(one).collect();
    Json::object(questions.iter().zip(&answers).map(|(question, answer)| (question.name.as_str(), answer.as_str())))
}
