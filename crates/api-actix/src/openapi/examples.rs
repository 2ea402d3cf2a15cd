//! Examples of requests and of the successful responses of all operations. They name the sandbox's model; the served
//! document names a model that can be called ([`crate::rendered_openapi`]).

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};
use utoipa::openapi::example::{Example, ExampleBuilder};

use crate::rendered_openapi::{SANDBOX_MODEL, SANDBOX_VARIANT};

/// The key of every example in `examples`. Some viewers ignore a single `example`.
const NAME: &str = "sandbox";

/// The answers by the names of their schemas.
static ANSWERS: LazyLock<HashMap<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("answers.json")).unwrap_or_default());

/// Returns the `examples` of a body with one value.
pub(crate) fn of(value: Value) -> [(&'static str, Example); 1] {
    [(NAME, ExampleBuilder::new().summary("An example").value(Some(value)).build())]
}

/// Returns the `examples` of a response by the name of its schema. A test checks that every response has one.
pub(crate) fn answer(schema: &str) -> Vec<(&'static str, Example)> {
    ANSWERS.get(schema).map(|value| of(value.clone())).into_iter().flatten().collect()
}

/// `out/report.csv`, as a file id.
pub(crate) const FILE_ID: &str = "cfile_b3V0L3JlcG9ydC5jc3Y";

pub(crate) fn decision_request() -> Value {
    json!({
        "model": SANDBOX_VARIANT,
        "state": "The blender smokes. I want my money back, and I am furious.",
        "questions": {
            "refund": {"type": "noul", "instructions": "Does the writer want money back?"},
            "queue": {
                "type": "choice",
                "instructions": "Who handles it?",
                "criteria": {"billing": "money back", "hardware": "a device that smokes", "other": null}
            },
            "heat": {"type": "score", "instructions": "How upset?", "criteria": ["calm", "annoyed", "furious"]}
        }
    })
}

pub(crate) fn assignment() -> Value {
    json!({"key_hashes": ["f30ba15c3e3465cbeb8798a26d28f2adb7f7c069bc4d40a0e2e625533e6aee56"]})
}

pub(crate) fn gemini_request() -> Value {
    json!({
        "model": SANDBOX_MODEL,
        "input": "The blender smokes. I want my money back, and I am furious.",
        "questions": {"refund": {"type": "noul", "instructions": "Does the writer want money back?"}}
    })
}
