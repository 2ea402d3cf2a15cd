//! The schemas of System One and of the contract. `wires::system_one` writes the bodies as text.
#![expect(dead_code, reason = "the schemas of bodies that are read and written as text")]

use serde_json::Value;
use utoipa::ToSchema;

use super::question::Questions;
use crate::http::envelope::ErrorBody;

/// Questions about a state.
#[derive(ToSchema)]
pub(crate) struct DecisionsRequest {
    /// A model that serves Decisions requests.
    #[schema(min_length = 1)]
    model: String,
    /// A map of typed questions (`noul`, `choice`, `score`), or any other JSON value, which is forwarded unchanged.
    #[schema(value_type = Questions)]
    questions: Value,
    /// The subject of the questions. Required with typed questions, as a string, object or array.
    #[schema(required = false)]
    state: Value,
    provider: Option<ProviderPreferences>,
    /// Groups related requests; never sent to a provider.
    #[schema(max_length = 256)]
    session_id: Option<String>,
    /// Observability metadata (`trace_id`, `trace_name`, `span_name`, `generation_name`, `parent_span_id` and custom
    /// members); never sent to a provider.
    #[schema(value_type = Option<Object>)]
    trace: Option<Value>,
    /// The end user; never sent to a provider.
    #[schema(max_length = 256)]
    user: Option<String>,
    /// Fallback models, tried in order if no endpoint of the previous models succeeds.
    #[schema(max_items = 16)]
    models: Option<Vec<String>>,
    /// True returns an error for each unanswered question instead of failing the whole request.
    partial: Option<bool>,
    /// Media, by the names that the state refers to. Only sent to endpoints with `assets` support.
    #[schema(value_type = Option<Object>)]
    assets: Option<Value>,
    /// Images beside the state. Only sent to endpoints with `images` support.
    images: Option<Vec<Value>>,
}

/// Routing preferences. Unsupported preferences are rejected, never ignored.
#[derive(ToSchema)]
pub(crate) struct ProviderPreferences {
    /// False tries only the first provider.
    allow_fallbacks: Option<bool>,
    /// The providers to try first, in order.
    order: Option<Vec<String>>,
    /// The only allowed providers.
    only: Option<Vec<String>>,
    /// The denied providers.
    ignore: Option<Vec<String>>,
    /// True allows only providers that support every parameter of the request.
    require_parameters: Option<bool>,
    /// `allow` or `deny`; `deny` excludes providers that may store inputs.
    data_collection: Option<String>,
    /// True allows only providers with zero data retention.
    zdr: Option<bool>,
    /// The only allowed quantizations.
    quantizations: Option<Vec<String>>,
    /// `price`, `latency` or `throughput`, or an object with `by` and `partition`.
    #[schema(required = false)]
    sort: Value,
    /// The maximum prices in USD per million tokens: `prompt`, `completion`.
    #[schema(value_type = Option<Object>)]
    max_price: Option<Value>,
    /// The preferred maximum latency in seconds: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_max_latency: Value,
    /// The preferred minimum throughput in tokens per second: a number, or an object of percentiles.
    #[schema(required = false)]
    preferred_min_throughput: Value,
}

/// The answers.
#[derive(ToSchema)]
pub(crate) struct DecisionsResponse {
    #[schema(value_type = Object)]
    answers: Value,
    /// The model that served the request.
    model: String,
    usage: Usage,
    /// The id of the answer and of its generation record.
    id: String,
    /// The provider that served the request.
    provider: String,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}

/// The usage of the request.
#[derive(ToSchema)]
pub(crate) struct Usage {
    #[schema(minimum = 0)]
    input_tokens: i64,
    #[schema(minimum = 0)]
    output_tokens: i64,
    /// The cost in USD.
    cost: f64,
}

/// A System One request with files, as a form: one JSON part and one part for each asset.
#[derive(ToSchema)]
pub(crate) struct DecisionsForm {
    /// The request, as JSON.
    request: DecisionsRequest,
    /// The content of an asset, in the part named by the asset's `part`. Any number of parts with any names.
    #[schema(required = false, rename = "asset-0", content_media_type = "application/octet-stream")]
    asset_0: String,
}

/// An error in System One's format, combined with the service's envelope.
#[derive(ToSchema)]
pub(crate) struct SystemOneError {
    /// A list of `{loc, msg, type}` for an invalid request, otherwise `{type, message}`.
    detail: Value,
    error: ErrorBody,
    /// The owner of the caller's workspace, if set.
    user_id: Option<String>,
    /// Service metadata about the handling of the request; only on request.
    #[schema(value_type = Option<Object>)]
    service_metadata: Option<Value>,
}
