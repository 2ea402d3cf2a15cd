//! The rows of the catalogue.

use super::{Modality, ModalitySet, ModelId};
use crate::json::Json;
use crate::money::Price;

/// A row of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// `author/slug[:variant]`.
    pub id: ModelId,
    /// The permanent slug, usually dated; a base row and its variants share it.
    pub canonical_slug: ModelId,
    /// The display name.
    pub name: String,
    /// The description, free text.
    pub description: String,
    /// The creation time in Unix seconds.
    pub created: i64,
    /// The context window in tokens.
    pub context_length: Option<u64>,
    /// The input and output modalities.
    pub architecture: Architecture,
    /// Prices in USD per unit.
    pub pricing: Pricing,
    /// Figures of the best provider.
    pub top_provider: TopProvider,
    /// Parameter names that the model supports.
    pub supported_parameters: Vec<String>,
    /// The target, if this row is an alias.
    pub alias_target: Option<AliasTarget>,
    /// Former names of this model, which still resolve to it.
    pub renamed_from: Vec<ModelId>,
    /// Further members by name, shown unchanged: `reasoning`, `default_parameters`, `benchmarks`, `hugging_face_id`, …
    pub further: Vec<(String, Json)>,
}

/// The modalities of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Architecture {
    /// `input->output`, such as `text+image->text`.
    pub modality: Option<String>,
    /// The input modalities.
    pub input_modalities: Vec<String>,
    /// The output modalities; names outside [`Modality`] are kept and match only `all`.
    pub output_modalities: Vec<String>,
    /// The tokenizer's family.
    pub tokenizer: Option<String>,
    /// The instruction format.
    pub instruct_type: Option<String>,
}

impl Architecture {
    /// Returns the output modalities that a filter can name.
    pub fn outputs(&self) -> ModalitySet {
        self.output_modalities.iter().filter_map(|name| Modality::from_name(&name.to_ascii_lowercase())).collect()
    }
}

/// Prices in USD per unit: per token for text, per image, per request. Zero where unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pricing {
    /// Per input token; negative where it varies.
    pub prompt: Price,
    /// Per output token; negative where it varies.
    pub completion: Price,
    /// Per image.
    pub image: Price,
    /// Per request.
    pub request: Price,
    /// Further prices by name (`input_cache_read`, `web_search`, …), in their original order.
    pub further: Vec<(String, Price)>,
    /// Rules that change prices by size or time of a request: a JSON array, shown unchanged.
    pub overrides: Option<Json>,
    /// False if the prices are unknown; the zeros are then no prices.
    pub is_known: bool,
}

impl Pricing {
    /// Returns prices for input and output tokens only.
    pub fn per_token(prompt: Price, completion: Price) -> Self {
        Self {
            prompt,
            completion,
            image: Price::ZERO,
            request: Price::ZERO,
            further: Vec::new(),
            overrides: None,
            is_known: true,
        }
    }

    /// Returns unknown prices, shown as zero.
    pub fn unknown() -> Self {
        Self { is_known: false, ..Self::per_token(Price::ZERO, Price::ZERO) }
    }

    /// Returns true if the token price depends on the routed model, so that no charge can be computed.
    pub fn is_variable(&self) -> bool {
        self.prompt.is_variable() || self.completion.is_variable()
    }
}

/// Figures of the best provider of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopProvider {
    /// The context window in tokens.
    pub context_length: Option<u64>,
    /// True if the provider filters content.
    pub is_moderated: bool,
    /// The most output tokens.
    pub max_completion_tokens: Option<u64>,
}

/// The target of an alias row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTarget {
    /// The display name of the target.
    pub name: String,
    /// The id or canonical slug of the target.
    pub slug: ModelId,
}

impl Model {
    /// Returns a row for a model of which only an endpoint is known: `text->decisions` at that price. Unknown sizes
    /// are 0, as public catalogues write them.
    pub fn minimal(id: ModelId, pricing: Pricing) -> Self {
        Self {
            canonical_slug: id.clone(),
            name: id.as_str().to_owned(),
            description: String::new(),
            created: 0,
            context_length: Some(0),
            architecture: Architecture {
                modality: Some("text->decisions".to_owned()),
                input_modalities: vec!["text".to_owned()],
                output_modalities: vec!["decisions".to_owned()],
                tokenizer: Some("Other".to_owned()),
                instruct_type: None,
            },
            pricing,
            top_provider: TopProvider { context_length: Some(0), is_moderated: false, max_completion_tokens: Some(0) },
            supported_parameters: Vec::new(),
            alias_target: None,
            renamed_from: Vec::new(),
            further: Vec::new(),
            id,
        }
    }

    /// Returns true if the model answers Decisions requests.
    pub fn serves_decisions(&self) -> bool {
        self.architecture.output_modalities.iter().any(|name| name.eq_ignore_ascii_case(Modality::Decisions.as_str()))
    }
}
