//! Examples of requests and successful responses of the five operations. Sandbox models answer the
//! requests in every installation.

use serde_json::{Value, json};
use utoipa::openapi::example::{Example, ExampleBuilder};

/// The key of every example in `examples`. Some viewers ignore a single `example`.
const NAME: &str = "sandbox";

/// Returns the `examples` of a body with one value.
pub(crate) fn of(value: Value) -> [(&'static str, Example); 1] {
    [(NAME, ExampleBuilder::new().summary("With the sandbox").value(Some(value)).build())]
}

/// `out/report.csv`, as a file id.
pub(crate) const FILE_ID: &str = "cfile_b3V0L3JlcG9ydC5jc3Y";

pub(crate) fn decision_request() -> Value {
    json!({
        "model": "sandbox/decider:free",
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

pub(crate) fn decision_response() -> Value {
    json!({
        "answers": {
            "refund": {"type": "noul", "noul": 0.88},
            "queue": {
                "type": "choice",
                "choice": "billing",
                "confidence": 0.51,
                "probabilities": {"billing": 0.67, "hardware": 0.24, "other": 0.09}
            },
            "heat": {
                "type": "score",
                "score": 1.37,
                "confidence": 0.05,
                "legend": {"0": "calm", "1": "annoyed", "2": "furious"},
                "probabilities": {"0": 0.21, "1": 0.21, "2": 0.58}
            }
        },
        "model": "sandbox/decider:free",
        "usage": {"input_tokens": 93, "output_tokens": 3, "cost": 0},
        "id": "gen-dec-01a20795c4d7722db3148c6b3a8d9599",
        "provider": "Tollgate Sandbox"
    })
}

/// A stored file in the native shape.
pub(crate) fn file() -> Value {
    json!({
        "_shape": "native",
        "id": "tgfile_01a207953d14777199990a3fae349e57",
        "type": "file",
        "filename": "out/report.csv",
        "mime_type": "text/csv",
        "size_bytes": 23,
        "created_at": "2026-11-23T08:45:50.740Z",
        "downloadable": true
    })
}

pub(crate) fn assignment() -> Value {
    json!({"key_hashes": ["f30ba15c3e3465cbeb8798a26d28f2adb7f7c069bc4d40a0e2e625533e6aee56"]})
}

pub(crate) fn assigned() -> Value {
    json!({"assigned_count": 1})
}

pub(crate) fn model() -> Value {
    json!({
        "data": {
            "id": "sandbox/decider",
            "canonical_slug": "sandbox/decider",
            "name": "Sandbox Decider",
            "created": 1_795_219_200,
            "description": "Answers inside this process by word overlap, the same way every time.",
            "context_length": 1_048_576,
            "architecture": {
                "modality": "text->decisions",
                "input_modalities": ["text"],
                "output_modalities": ["decisions"],
                "tokenizer": "Other",
                "instruct_type": null
            },
            "pricing": {"prompt": "0", "completion": "0", "image": "0", "request": "0"},
            "top_provider": {"context_length": 1_048_576, "max_completion_tokens": null, "is_moderated": false},
            "supported_parameters": [],
            "links": {"details": "/api/v1/models/sandbox/decider/endpoints"},
            "hugging_face_id": null,
            "per_request_limits": null,
            "default_parameters": null,
            "supported_voices": null,
            "knowledge_cutoff": null,
            "expiration_date": null
        }
    })
}

pub(crate) fn count() -> Value {
    json!({"data": {"count": 23}})
}
