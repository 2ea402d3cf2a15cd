//! `POST …/guardrails/{id}/explain`: explains how a request would be handled, without sending it.

use domain::budget::LimitStatus;
use domain::decision::{Decider, DecisionRequest, EndpointVerdict, Explanation, Verdict};
use domain::json::JsonText;
use domain::model::ModelId;
use domain::question::ProviderInput;
use domain::usage::Finding;
use wires::client::{check_names, read_members};

use crate::detection;
use crate::detection::Entry;
use crate::endpoints::prelude::*;

pub(crate) const ROUTE: Route =
    Route::management(Post, "/guardrails/{id}/explain", tags::GUARDRAILS, handler!(handle, payload))
        .operation("explainGuardrail", "Explain the handling of a request")
        .description(
            "Returns whether a key with this guardrail could send this body to the model, the deciding rule, and the \
             redacted content. Nothing is sent, held or charged; the current health of endpoints is ignored.",
        )
        .body(BodySchema::of::<ExplainRequest>)
        .answer(|| BodySchema::data::<ExplanationView<'_>>("ExplainResponse", "An explanation."), "The explanation");

/// The members of a request to explain.
const NAMES: [&str; 2] = ["key_hash", "body"];

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let [key_hash, inner] = read_members(body.text()?, &NAMES)?;
    check_names(body.text()?, &NAMES, &[]).map_err(ApiError::invalid)?;
    let key_hash: Option<String> = key_hash
        .map(|hash| serde_json::from_str(hash.get()).map_err(|_| ApiError::invalid("key_hash must be a string")))
        .transpose()?;
    let inner = inner.ok_or_else(|| ApiError::invalid("body is required: that of a Decisions request"))?;
    let permit = call.permit();
    let hold = |bytes| permit.as_ref().map_or(Ok(()), |permit| permit.memory().hold_structures(bytes));
    let request = request(inner, hold)?;
    let routed = call.routed();
    let resolved = routed.explain_guardrail.resolve(by, &call.id()?, key_hash.as_deref(), request).await?;
    if let Some((questions, permit)) = resolved.preset_questions().zip(permit) {
        // They were read and parsed for this request.
        permit.memory().hold_part(questions.json.text().len(), questions.structure_bytes())?;
    }
    let explanation = routed.explain_guardrail.execute(resolved).await?;
    Ok(Data::respond(StatusCode::OK, ExplanationView::new(&explanation)))
}

/// Reads the request in any format that a Decisions path accepts.
fn request(body: JsonText<'_>, hold: impl FnOnce(usize) -> Result<(), ApiError>) -> Result<DecisionRequest, ApiError> {
    if !body.get().starts_with('{') {
        return Err(ApiError::invalid("body must be a JSON object: that of a Decisions request"));
    }
    let [state, input] = read_members(body.get(), &["state", "input"])?;
    let entry = if state.is_none() && input.is_some() { Entry::AnyShape } else { Entry::Contract };
    let parsed = detection::read(entry, body.get(), Vec::new(), hold).map_err(|(_, error)| error)?;
    Ok(parsed.draft.check()?)
}

/// A request to explain.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a body that `handle` reads by hand, because `body` keeps its bytes")]
struct ExplainRequest {
    /// The key that would send the request, by hash or id. Default: a key of the guardrail's workspace without its own
    /// limits.
    key_hash: Option<String>,
    /// The body of a Decisions request, in any format that a Decisions path accepts.
    body: Object,
}

/// The predicted handling of a request.
#[derive(Serialize, ToSchema)]
#[schema(as = Explanation)]
pub struct ExplanationView<'a> {
    /// True if the request would be sent to a provider.
    allowed: bool,
    /// The rule that rejects the request, the first of several; null if none does.
    #[schema(required)]
    decided_by: Option<DeciderView<'a>>,
    /// The ids of the applied guardrails, the workspace's first.
    guardrails: Vec<String>,
    /// The resolved model id; null if a named model does not resolve. The request is then rejected before any rule
    /// applies.
    #[schema(required)]
    model: Option<&'a str>,
    endpoints: Vec<EndpointView<'a>>,
    /// The matches that filters would redact or flag.
    findings: Vec<FindingView<'a>>,
    /// The content that would be sent; null if a filter blocks the request.
    #[schema(required)]
    sent: Option<SentView>,
    /// The current limits of the key; empty if no key is named.
    limits: Vec<LimitView>,
    /// The amount that would be held, in USD; null if no endpoint is allowed.
    #[schema(required)]
    bound_usd: Option<Decimal>,
    /// True if the amount is within all limits now.
    #[schema(required)]
    bound_fits: Option<bool>,
}

/// The rule that rejects a request.
#[derive(Serialize, ToSchema)]
#[schema(as = Decider)]
struct DeciderView<'a> {
    /// A member of the guardrail's record, `content_filter`, `budget`, `key_disabled`, `key_expired`,
    /// `workspace_suspended`, `unpriced`, `preferences`, `capability` or `no_endpoint`.
    rule: &'static str,
    message: String,
    #[schema(required)]
    guardrail_id: Option<String>,
    /// The label of the blocking filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    label: Option<&'a str>,
    /// The path of the match of a blocking filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    path: Option<&'a str>,
    /// The owner of the exhausted limit: `workspace`, `key` or `guardrail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scope: Option<&'static str>,
}

/// An endpoint and its verdict.
#[derive(Serialize, ToSchema)]
#[schema(as = ExplainedEndpoint)]
struct EndpointView<'a> {
    model: &'a str,
    provider: &'a str,
    /// `allowed`, `forbidden`, `unpriced`, `excluded_by_preferences` or `unsupported`.
    verdict: &'static str,
    #[schema(required)]
    rule: Option<&'static str>,
    #[schema(required)]
    guardrail_id: Option<String>,
}

/// The matches of a filter, without the matched text.
#[derive(Serialize, ToSchema)]
#[schema(as = ExplainedFinding)]
struct FindingView<'a> {
    guardrail_id: String,
    label: &'a str,
    #[schema(value_type = FilterAction)]
    action: &'static str,
    /// The path of the first match.
    path: &'a str,
    #[schema(value_type = u64, minimum = 1)]
    count: u32,
}

/// The questions and the state that would be sent.
#[derive(Serialize, ToSchema)]
#[schema(as = ExplainedContent)]
struct SentView {
    #[schema(value_type = Value)]
    questions: Box<RawValue>,
    #[schema(required, value_type = Option<Value>)]
    state: Option<Box<RawValue>>,
}

/// A limit and its current usage.
#[derive(Serialize, ToSchema)]
#[schema(as = LimitStatus)]
struct LimitView {
    /// `workspace`, `key` or `guardrail`.
    scope: &'static str,
    #[schema(required)]
    guardrail_id: Option<String>,
    /// True for the workspace's prepaid credit.
    is_credit: bool,
    limit_usd: Decimal,
    #[schema(required, value_type = Option<ResetInterval>)]
    reset_interval: Option<&'static str>,
    spent_usd: Decimal,
    reserved_usd: Decimal,
    #[schema(required)]
    resets_at: Option<DateTime>,
}

impl<'a> ExplanationView<'a> {
    /// Creates the view of an explanation.
    pub fn new(explanation: &'a Explanation) -> Self {
        Self {
            allowed: explanation.allowed,
            decided_by: explanation.decided_by.as_ref().map(DeciderView::new),
            guardrails: explanation.guardrails.iter().map(ToString::to_string).collect(),
            model: explanation.model.as_ref().map(ModelId::as_str),
            endpoints: explanation.endpoints.iter().map(EndpointView::new).collect(),
            findings: explanation.findings.iter().map(FindingView::new).collect(),
            sent: explanation.provider_input.as_deref().map(SentView::new),
            limits: explanation.limits.iter().map(LimitView::new).collect(),
            bound_usd: explanation.bound.map(usd),
            bound_fits: explanation.bound_fits,
        }
    }
}

impl<'a> DeciderView<'a> {
    fn new(decider: &'a Decider) -> Self {
        let (label, path) = match decider {
            Decider::Filter(blocked) => (Some(blocked.label.as_str()), Some(blocked.path.as_str())),
            _ => (None, None),
        };
        let scope = match decider {
            Decider::Budget(overspent) => Some(overspent.scope.as_str()),
            _ => None,
        };
        let guardrail_id = decider.guardrail_id().map(|id| id.to_string());
        Self { rule: decider.rule(), message: decider.to_string(), guardrail_id, label, path, scope }
    }
}

impl<'a> EndpointView<'a> {
    fn new(verdict: &'a EndpointVerdict) -> Self {
        let forbidden = match &verdict.verdict {
            Verdict::Forbidden(forbidden) => Some(forbidden),
            _ => None,
        };
        Self {
            model: verdict.model.as_str(),
            provider: verdict.endpoint.provider.as_str(),
            verdict: verdict.verdict.as_str(),
            rule: forbidden.map(|forbidden| forbidden.rule),
            guardrail_id: forbidden.map(|forbidden| forbidden.guardrail_id.to_string()),
        }
    }
}

impl<'a> FindingView<'a> {
    fn new(finding: &'a Finding) -> Self {
        Self {
            guardrail_id: finding.guardrail_id.to_string(),
            label: &finding.label,
            action: finding.action.as_str(),
            path: &finding.path,
            count: finding.count,
        }
    }
}

impl SentView {
    fn new(provider_input: &ProviderInput) -> Self {
        Self { questions: opaque(&provider_input.questions.json), state: provider_input.state.as_ref().map(opaque) }
    }
}

impl LimitView {
    fn new(standing: &LimitStatus) -> Self {
        Self {
            scope: standing.scope.as_str(),
            guardrail_id: standing.guardrail_id.map(|id| id.to_string()),
            is_credit: standing.is_credit,
            limit_usd: usd(standing.limit),
            reset_interval: standing.reset.map(domain::budget::ResetInterval::as_str),
            spent_usd: usd(standing.spent),
            reserved_usd: usd(standing.reserved),
            resets_at: standing.resets_at.map(time),
        }
    }
}
