//! The steps of the demo, and the records that they need.

use std::collections::HashMap;

use domain::api_key::{ApiKeyScope, NewApiKey};
use domain::authority::{Authority, ManagementScope};
use domain::budget::{ResetInterval, SpendLimit};
use domain::change::Change;
use domain::container::{BlobKey, ContainerId, ContainerPath, OnePiece};
use domain::guardrail::GuardrailDraft;
use serde_json::Value;
use serde_json::value::RawValue;

use super::exchange::{Exchange, Request};
use crate::commands::prelude::*;

/// A request with its expected response.
pub struct Step {
    /// The request.
    pub request: Request,
    /// The expected status.
    pub status: u16,
    /// Returns true if the body is as expected.
    pub holds: fn(&Value) -> bool,
    /// Returns the essential result in a line, for the five operations of the interface.
    pub summary: Option<fn(&Exchange) -> String>,
}

impl Step {
    fn new(method: Method, title: &str, path: impl Into<String>, (key, body): (&str, Option<&str>)) -> Self {
        let (title, key, body) = (title.to_owned(), Some(key.to_owned()), body.map(str::to_owned));
        let request = Request { title, method, path: path.into(), key, body };
        Self { request, status: 200, holds: |_| true, summary: None }
    }

    fn get(title: &str, path: String, key: &str) -> Self {
        Self::new(Method::GET, title, path, (key, None))
    }

    fn post(title: &str, path: impl Into<String>, key_and_body: (&str, Option<&str>)) -> Self {
        Self::new(Method::POST, title, path, key_and_body)
    }

    fn expects(self, holds: fn(&Value) -> bool) -> Self {
        Self { holds, ..self }
    }

    fn fails(self, status: u16, holds: fn(&Value) -> bool) -> Self {
        Self { status, holds, ..self }
    }

    fn summary(self, summary: fn(&Exchange) -> String) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

/// A placeholder in paths for the id of the last decision.
pub const LAST_DECISION: &str = "{last-decision}";
/// The beginning of the path and query of a usage record.
pub const RECORD: &str = "/generation?id=";

/// A model that runs in this process.
pub const MODEL: &str = "sandbox/decider";

/// Returns the steps for a server with a base path.
pub fn steps(base: &str, fixtures: &Fixtures) -> Vec<Step> {
    let mut steps = operations(base, fixtures);
    steps.extend(other_ways_in(base, fixtures));
    steps.extend(limits(base, fixtures));
    steps.push(failure(base, fixtures));
    steps
}

/// Returns the five operations of the interface.
fn operations(base: &str, fixtures: &Fixtures) -> Vec<Step> {
    let Fixtures { inference_key: key, management_key, file_id, guardrail_id, .. } = fixtures;
    vec![
        Step::post(
            "1. Promote a container file: copied into durable storage",
            format!("{base}/containers/{CONTAINER}/files/{file_id}/promote"),
            (key, None),
        )
        .expects(|body| body["filename"] == PATH && body["downloadable"] == true && body["mime_type"] == "text/csv")
        .summary(promotion_summary),
        Step::post(
            "2. Decisions: three questions about one state, answered by the built-in sandbox",
            format!("{base}/api/alpha/decisions"),
            (key, Some(DECISION)),
        )
        .expects(|body| {
            let answers = &body["answers"];
            answers["refund"]["noul"].as_f64().is_some_and(|yes| yes > 0.5)
                && answers["queue"]["choice"] == "billing"
                && answers["heat"]["score"].as_f64().is_some_and(|score| score > 1.0)
                && body["id"].as_str().is_some_and(|id| id.starts_with("gen-dec-"))
                && body["usage"]["cost"].is_number()
        })
        .summary(decision_summary),
        Step::post(
            "3. Assign keys to a guardrail: needs a management key; unknown hashes are skipped",
            format!("{base}/guardrails/{guardrail_id}/assignments/keys"),
            (management_key, Some(&assignment(&fixtures.inference_hash))),
        )
        .expects(|body| body["assigned_count"] == 1)
        .summary(assignment_summary),
        Step::get("4. One model by its slug", format!("{base}/model/{MODEL}"), key)
            .expects(|body| body["data"]["id"] == MODEL && body["data"]["pricing"]["prompt"].is_string())
            .summary(model_summary),
        Step::get(
            "5. How many models answer decisions",
            format!("{base}/models/count?output_modalities=decisions"),
            key,
        )
        .expects(|body| body["data"]["count"].as_u64().is_some_and(|count| count > 0))
        .summary(count_summary),
    ]
}

fn promotion_summary(exchange: &Exchange) -> String {
    let body = exchange.json();
    format!("{}, {} bytes, is document {}", text(&body["filename"]), body["size_bytes"], text(&body["id"]))
}

fn decision_summary(exchange: &Exchange) -> String {
    let body = exchange.json();
    let answers = &body["answers"];
    format!(
        "refund {}, queue {}, heat {} of 2, for {} USD",
        answers["refund"]["noul"],
        text(&answers["queue"]["choice"]),
        answers["heat"]["score"],
        cost(&exchange.body).unwrap_or_default(),
    )
}

fn assignment_summary(exchange: &Exchange) -> String {
    format!("{} key assigned, an unknown one skipped", exchange.json()["assigned_count"])
}

fn model_summary(exchange: &Exchange) -> String {
    let body = exchange.json();
    format!("{}, {} USD per input token", text(&body["data"]["id"]), text(&body["data"]["pricing"]["prompt"]))
}

fn count_summary(exchange: &Exchange) -> String {
    format!("{} models", exchange.json()["data"]["count"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the cost of a decision as the response writes it: a decimal number is not read as a float.
fn cost(body: &str) -> Option<String> {
    let members: HashMap<String, Box<RawValue>> = serde_json::from_str(body).ok()?;
    let usage: HashMap<String, Box<RawValue>> = serde_json::from_str(members.get("usage")?.get()).ok()?;
    Some(usage.get("cost")?.get().to_owned())
}

/// Returns requests in vendors' formats, and a lookup of the decision's record.
fn other_ways_in(base: &str, fixtures: &Fixtures) -> Vec<Step> {
    let key = &fixtures.inference_key;
    vec![
        Step::get("6. The usage record of a decision", format!("{base}{RECORD}{LAST_DECISION}"), key).expects(|body| {
            body["data"]["model"] == MODEL
                && body["data"]["total_cost"].is_number()
                && body["data"]["provider_responses"][0]["outcome"] == "completed"
        }),
        Step::post("7. The same question from a System One client", "/v1/systemone", (key, Some(SYSTEM_ONE)))
            .expects(|body| body["answers"]["refund"]["noul"].is_number()),
        Step::post("8. The same question from an OpenAI client", "/v1/decisions", (key, Some(OPENAI))).expects(
            |body| {
                let answer = &body["answers"][0];
                answer["type"] == "predicate" && answer["name"] == "refund" && answer["probability"].is_number()
            },
        ),
        Step::get("9. The endpoints of a model and their health", format!("{base}/models/{MODEL}/endpoints"), key)
            .expects(|body| {
                let endpoint = &body["data"]["endpoints"][0];
                endpoint["tag"] == "sandbox" && endpoint["health"]["throttled"] == false
            }),
        Step::get("10. All providers and the health of their endpoints", format!("{base}/providers"), key).expects(
            |body| {
                let slugs = [&body["data"][0]["slug"], &body["data"][1]["slug"]];
                slugs == ["demo", "sandbox"] && body["data"][1]["health"]["throttled"] == 0
            },
        ),
    ]
}

/// Returns requests that guardrails and limits affect.
fn limits(base: &str, fixtures: &Fixtures) -> Vec<Step> {
    let guardrail = format!("{base}/guardrails/{}", fixtures.guardrail_id);
    let key = &fixtures.management_key;
    let title = "11. A guardrail rule: email addresses are redacted before sending";
    vec![
        Step::new(Method::PATCH, title, guardrail.clone(), (key, Some(RULES)))
            .expects(|body| body["data"]["version"] == 2),
        Step::post(
            "12. The effect of the rule, explained without sending a request",
            format!("{guardrail}/explain"),
            (key, Some(EXPLAINED)),
        )
        .expects(|body| {
            body["data"]["allowed"] == true
                && body["data"]["findings"][0]["label"] == "EMAIL"
                && body["data"]["sent"]["state"].as_str().is_some_and(|state| state.contains("[EMAIL]"))
        }),
        Step::post(
            "13. A key with a tiny limit and a model with a price: rejected before anything is sent",
            format!("{base}/api/alpha/decisions"),
            (&fixtures.limited_key, Some(PRICED)),
        )
        .fails(402, |body| body["error"]["metadata"]["scope"] == "key"),
    ]
}

/// Returns a request to a model that always fails.
fn failure(base: &str, fixtures: &Fixtures) -> Step {
    Step::post(
        "A simulated failure: sandbox models that always fail, for client tests",
        format!("{base}/api/alpha/decisions"),
        (&fixtures.inference_key, Some(FAILING)),
    )
    .fails(529, |body| body["error"]["code"] == 529 && body["error"]["message"] == "Provider returned error")
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

/// A question in System One's format.
const SYSTEM_ONE: &str = r#"{
    "model": "sandbox/decider",
    "state": "The blender smokes. I want my money back.",
    "questions": {"refund": {"type": "noul", "instructions": "Does the writer want money back?"}}
}"#;

/// The same question to a model with a price.
const PRICED: &str = r#"{
    "model": "demo/priced",
    "state": "The blender smokes. I want my money back.",
    "questions": {"refund": {"type": "noul", "instructions": "Does the writer want money back?"}}
}"#;

/// The same question in OpenAI's format.
const OPENAI: &str = r#"{
    "model": "sandbox/decider",
    "input": "The blender smokes. I want my money back.",
    "questions": [{"type": "predicate", "name": "refund", "instructions": "Does the writer want money back?"}]
}"#;

/// A filter.
const RULES: &str = r#"{"content_filter_builtins": [{"slug": "email", "action": "redact"}]}"#;

/// A request that contains an e-mail address.
const EXPLAINED: &str = r#"{
    "body": {
        "model": "sandbox/decider",
        "state": "Write to ann@example.com, I want my money back.",
        "questions": {"refund": {"type": "noul", "instructions": "Does the writer want money back?"}}
    }
}"#;

/// A question to a model that always fails.
const FAILING: &str = r#"{
    "model": "sandbox/error-529",
    "state": "The sky is blue.",
    "questions": {"sky": {"type": "noul", "instructions": "Is the sky blue?"}}
}"#;

fn assignment(hash: &str) -> String {
    let nobody = "0".repeat(64);
    format!(r#"{{"key_hashes": ["{hash}", "{nobody}"]}}"#)
}

/// The container of the demo.
pub const CONTAINER: &str = "sess_demo";
/// A file in it.
pub const PATH: &str = "out/report.csv";
/// The content of the file.
const CONTENT: &str = "ticket,urgent\n1041,yes\n1042,no\n";

/// The created records.
#[derive(Debug, Clone)]
pub struct Fixtures {
    /// The secret of an inference key.
    pub inference_key: String,
    /// Its hash.
    pub inference_hash: String,
    /// The secret of a management key.
    pub management_key: String,
    /// The secret of an inference key with a limit of 0.000000000001 USD.
    pub limited_key: String,
    /// A guardrail of the same workspace.
    pub guardrail_id: String,
    /// The file's id.
    pub file_id: String,
}

impl Fixtures {
    /// Creates a workspace, keys, a guardrail and a container file.
    ///
    /// # Errors
    /// A store failed.
    pub async fn make(config: &Config, stores: &Stores) -> anyhow::Result<Self> {
        let workspace = stores.create_workspace().default(&Authority::system()).await?;
        let new = |name: &str, scope, limit| NewApiKey { limit, ..NewApiKey::named(name, scope) };
        let by = Authority::system();
        let create = stores.create_api_key();
        let (inference, inference_secret) =
            create.execute(&Change::plain(&by), new("demo", ApiKeyScope::Inference(workspace.id), None)).await?;
        let (_, management_secret) = create
            .execute(
                &Change::plain(&by),
                new("demo management", ApiKeyScope::Management(ManagementScope::UNRESTRICTED), None),
            )
            .await?;
        let limit = SpendLimit { amount: Usd::from_pico(1), reset: Some(ResetInterval::Daily) };
        let limited = new("demo limited", ApiKeyScope::Inference(workspace.id), Some(limit));
        let (_, limited_secret) = create.execute(&Change::plain(&by), limited).await?;
        let draft = GuardrailDraft::named("demo guardrail").in_workspace(workspace.id);
        let guardrails = stores.manage_guardrails(config).await?;
        let guardrail = guardrails.create(&Change::plain(&Authority::system()), &draft).await?.guardrail;
        let (container, path): (ContainerId, ContainerPath) = (CONTAINER.parse()?, PATH.parse()?);
        let key = BlobKey::container_file(workspace.id, &container, &path);
        stores
            .blobs
            .put(&key, Box::new(OnePiece::new(CONTENT)))
            .await
            .context("the container file could not be written")?;
        Ok(Self {
            inference_key: inference_secret.expose().to_owned(),
            inference_hash: inference.hash.to_string(),
            management_key: management_secret.expose().to_owned(),
            limited_key: limited_secret.expose().to_owned(),
            guardrail_id: guardrail.id.to_string(),
            file_id: path.file_id(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_keeps_decimal_notation() {
        let body = r#"{"id":"x","usage":{"input_tokens":126,"cost":0.00000504}}"#;
        assert_eq!(cost(body).as_deref(), Some("0.00000504"));
        assert_eq!(cost("{}"), None);
    }
}
