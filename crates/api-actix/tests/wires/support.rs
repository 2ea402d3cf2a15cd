//! The schemas of the served document, and answers to generated requests.

use std::sync::LazyLock;

use api_actix::openapi_document;
use domain::json::Json;
use domain::question::{Question, QuestionKind};
use openapi_check::Schemas;
use serde_json::json;
use wires::formats::Shape;

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
