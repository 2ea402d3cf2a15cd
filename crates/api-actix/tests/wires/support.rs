//! Answers to generated requests.

use std::sync::{Arc, LazyLock};

use api_actix::openapi_document;
use api_actix::wires::DecisionResponse;
use api_actix::wires::dispatch::{ParsedRequest, Shape, write};
use domain::decision::{AnswerRules, Answers, Decision, DecisionRequest, Question, QuestionKind};
use domain::json::Json;
use domain::routing::ConfidenceSource;
use domain::usage::UsageSource;
use openapi_check::Schemas;
use serde_json::json;

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new(openapi_document("/api/v1")).unwrap());

/// Checks a written body against a schema of the served document.
#[track_caller]
pub fn assert_valid(schema: &str, body: &str) {
    let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
    let parsed = match serde_json::from_str(body) {
        // A provider's number that this parser cannot represent is forwarded all the same.
        Err(error) if error.to_string().contains("number out of range") => return,
        parsed => parsed.unwrap(),
    };
    let violations = SCHEMAS.violations(&reference, &parsed);
    assert_eq!(violations, [""; 0], "{schema}: {body}");
}

/// Returns the schema of a wire's responses.
pub fn response_schema(wire: Shape) -> &'static str {
    match wire {
        Shape::SystemOne => "DecisionsResponse",
        Shape::OpenAi => "OpenAiDecisionsResponse",
        Shape::Gemini => "GeminiDecisionsResponse",
        Shape::Sglang => "SglangDecisionsResponse",
    }
}

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
