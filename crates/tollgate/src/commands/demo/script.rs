//! The five operations in turn, each with what its answer must be.

use http::Method;
use serde_json::Value;

use super::exchange::Request;
use super::fixtures::{CONTAINER, Fixtures};

/// A request and a look at its answer.
pub struct Step {
    /// What is asked.
    pub request: Request,
    /// The status that it must have.
    pub status: u16,
    /// Whether the body is what it should be.
    pub holds: fn(&Value) -> bool,
}

/// The model that answers in this process.
pub const MODEL: &str = "sandbox/decider";

/// The demonstration, for a server with that base path.
pub fn steps(base: &str, fixtures: &Fixtures) -> Vec<Step> {
    let get = |title: &str, path: String| request(title, Method::GET, path, &fixtures.inference_key, None);
    vec![
        Step {
            request: request(
                "1. Promote a container file: it becomes a durable document",
                Method::POST,
                format!("{base}/containers/{CONTAINER}/files/{}/promote", fixtures.file_id),
                &fixtures.inference_key,
                None,
            ),
            status: 200,
            holds: |body| {
                body["filename"] == super::fixtures::PATH
                    && body["downloadable"] == true
                    && body["mime_type"] == "text/csv"
            },
        },
        Step {
            request: request(
                "2. Decisions: three questions about one state, answered by the built-in sandbox",
                Method::POST,
                format!("{base}/api/alpha/decisions"),
                &fixtures.inference_key,
                Some(DECISION.to_owned()),
            ),
            status: 200,
            holds: |body| {
                body["answers"]["refund"]["type"] == "noul"
                    && body["answers"]["queue"]["choice"].is_string()
                    && body["answers"]["heat"]["score"].is_number()
                    && body["id"].as_str().is_some_and(|id| id.starts_with("gen-dec-"))
                    && body["usage"]["cost"].is_number()
            },
        },
        Step {
            request: request(
                "3. Assign keys to a guardrail: needs a management key; a hash that nobody has is skipped",
                Method::POST,
                format!("{base}/guardrails/{}/assignments/keys", fixtures.guardrail_id),
                &fixtures.management_key,
                Some(assignment(&fixtures.inference_hash)),
            ),
            status: 200,
            holds: |body| body["assigned_count"] == 1,
        },
        Step {
            request: get("4. One model by its slug", format!("{base}/model/{MODEL}")),
            status: 200,
            holds: |body| body["data"]["id"] == MODEL && body["data"]["pricing"]["prompt"].is_string(),
        },
        Step {
            request: get(
                "5. How many models answer decisions",
                format!("{base}/models/count?output_modalities=decisions"),
            ),
            status: 200,
            holds: |body| body["data"]["count"].as_u64().is_some_and(|count| count > 0),
        },
        Step {
            request: request(
                "And a failure: some sandbox models exist to fail, so that a client can be tested",
                Method::POST,
                format!("{base}/api/alpha/decisions"),
                &fixtures.inference_key,
                Some(FAILING.to_owned()),
            ),
            status: 529,
            holds: |body| body["error"]["code"] == 529 && body["error"]["message"] == "Provider returned error",
        },
    ]
}

fn request(title: &str, method: Method, path: String, key: &str, body: Option<String>) -> Request {
    Request { title: title.to_owned(), method, path, key: Some(key.to_owned()), body }
}

/// The body of the Decisions request.
const DECISION: &str = r#"{
    "model": "sandbox/decider",
    "state": {"subject": "Broken blender", "body": "It smokes. I want my money back, and I am furious."},
    "questions": {
        "refund": {"type": "noul", "instructions": "Does the writer want money back?"},
        "queue": {
            "type": "choice",
            "instructions": "Who handles it?",
            "criteria": {"billing": "money back", "hardware": "a device that smokes", "other": null}
        },
        "heat": {"type": "score", "instructions": "How upset?", "criteria": ["calm", "annoyed", "furious"]}
    },
    "session_id": "demo",
    "trace": {"trace_name": "first steps"},
    "user": "newcomer"
}"#;

/// A question to a model that exists to fail.
const FAILING: &str = r#"{
    "model": "sandbox/error-529",
    "state": "The sky is blue.",
    "questions": {"sky": {"type": "noul", "instructions": "Is the sky blue?"}}
}"#;

fn assignment(hash: &str) -> String {
    let nobody = "0".repeat(64);
    format!(r#"{{"key_hashes": ["{hash}", "{nobody}"]}}"#)
}
