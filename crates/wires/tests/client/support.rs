//! Answers to generated requests. The tests of `api-actix` include this file too.

use std::sync::Arc;

use domain::decision::{Decision, DecisionRequest};
use domain::json::Json;
use domain::question::{AnswerRules, Answers, ConfidenceSource};
use domain::usage::{QuestionOutcomes, UsageSource};
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
        outcomes: QuestionOutcomes::default(),
        findings: Vec::new(),
    }
}

/// Returns the response body of the request.
pub fn body(asked: &ParsedRequest, request: &DecisionRequest, answers: &Json) -> String {
    let decision = decision(request, answers);
    let questions = request.provider_input.questions.typed.as_deref().unwrap_or_default();
    write(&asked.response_format, &DecisionResponse { decision: &decision, questions, service_metadata: None })
}
