//! The schemas of the served document.

use std::sync::LazyLock;

use api_actix::openapi_document;
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
