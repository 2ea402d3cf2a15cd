//! The schemas of catalogue rows and lists, which `wires::catalogue` and this module render as text. The tests of this
//! module compare both.
#![expect(dead_code, reason = "the schemas of bodies that are written as text")]

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A model. Further public members are possible.
#[derive(ToSchema)]
pub(crate) struct Model {
    /// `author/slug`, optionally followed by a colon and a variant.
    id: String,
    canonical_slug: String,
    name: String,
    /// Unix epoch seconds.
    created: i64,
    description: String,
    /// The context length in tokens.
    #[schema(required)]
    context_length: Option<i64>,
    architecture: Architecture,
    pricing: Pricing,
    top_provider: TopProvider,
    supported_parameters: Vec<String>,
    /// The model that an alias leads to; only in rows of aliases.
    #[schema(nullable = false)]
    alias_target: Option<AliasTarget>,
    links: Links,
    reasoning: Option<Reasoning>,
    #[schema(required)]
    default_parameters: Value,
    #[schema(required)]
    expiration_date: Option<String>,
    #[schema(required)]
    knowledge_cutoff: Option<String>,
    #[schema(required)]
    per_request_limits: Value,
    #[schema(required)]
    supported_voices: Option<Vec<String>>,
    #[schema(required)]
    hugging_face_id: Option<String>,
    /// A public member of an imported row.
    #[serde(flatten)]
    further: BTreeMap<String, Value>,
}

/// The target of an alias.
#[derive(ToSchema)]
pub(crate) struct AliasTarget {
    name: String,
    /// The id of the model.
    slug: String,
}

/// The input and output modalities.
#[derive(ToSchema)]
pub(crate) struct Architecture {
    /// `input->output`
    #[schema(required)]
    modality: Option<String>,
    input_modalities: Vec<String>,
    output_modalities: Vec<String>,
    #[schema(required)]
    tokenizer: Option<String>,
    #[schema(required)]
    instruct_type: Option<String>,
}

/// Prices in USD per unit, as decimal strings; further prices are possible.
#[derive(ToSchema)]
pub(crate) struct Pricing {
    prompt: String,
    completion: String,
    image: String,
    request: String,
    /// Prices under conditions, as imported.
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    overrides: Option<Vec<Value>>,
    #[serde(flatten)]
    further: BTreeMap<String, String>,
}

/// The limits of the top provider.
#[derive(ToSchema)]
pub(crate) struct TopProvider {
    #[schema(required)]
    context_length: Option<i64>,
    #[schema(required)]
    max_completion_tokens: Option<i64>,
    is_moderated: bool,
}

/// The links of a model.
#[derive(ToSchema)]
pub(crate) struct Links {
    /// The path of the model's endpoints.
    details: String,
}

/// The reasoning capability of a model.
#[derive(ToSchema)]
pub(crate) struct Reasoning {
    mandatory: bool,
    default_enabled: Option<bool>,
    default_effort: Option<String>,
    supported_efforts: Option<Vec<String>>,
    #[serde(flatten)]
    further: BTreeMap<String, Value>,
}

/// A list of models.
#[derive(ToSchema)]
pub(crate) struct ModelListResponse {
    #[schema(pattern = "^list$")]
    object: String,
    data: Vec<ListedModel>,
    /// The decision models, whatever the filter and the page, in the format of System One's clients.
    models: Vec<DecisionModel<'static>>,
    /// The number of models that match the filter.
    #[schema(minimum = 0)]
    total_count: i64,
    links: PageLinks,
}

/// A model in a list.
#[derive(ToSchema)]
pub(crate) struct ListedModel {
    #[serde(flatten)]
    model: Model,
    #[schema(pattern = "^model$")]
    object: String,
    /// The author.
    owned_by: String,
}

/// A decision model, in the format of System One's clients.
#[derive(Serialize, ToSchema)]
pub(super) struct DecisionModel<'a> {
    /// The name to use in requests.
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    #[schema(format = Date)]
    pub(super) release_date: String,
}

/// The links to other pages.
#[derive(ToSchema)]
pub(crate) struct PageLinks {
    /// The path and query of the next page; null on the last page.
    #[schema(required)]
    next: Option<String>,
}
