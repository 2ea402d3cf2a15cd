//! One row of the catalogue.

use super::{Modality, ModalitySet, ModelId};
use crate::json::Json;
use crate::money::Price;

/// One model, as operation 4 shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// `author/slug[:variant]`.
    pub id: ModelId,
    /// The permanent slug, usually dated; a base row and its variants share it.
    pub canonical_slug: ModelId,
    /// Display name.
    pub name: String,
    /// Free text.
    pub description: String,
    /// Creation time in Unix epoch seconds.
    pub created: i64,
    /// Context window in tokens.
    pub context_length: Option<u64>,
    /// What goes in and comes out.
    pub architecture: Architecture,
    /// Prices in USD per unit.
    pub pricing: Pricing,
    /// Figures of the best provider.
    pub top_provider: TopProvider,
    /// Parameter names that the model supports.
    pub supported_parameters: Vec<String>,
    /// Where this row only stands for another: the id or canonical slug of that other.
    pub alias_target: Option<AliasTarget>,
    /// Names that this model had before; they go on resolving to it.
    pub renamed_from: Vec<ModelId>,
    /// Members that are shown as they are and that no rule looks into, by name: `reasoning`, `default_parameters`,
    /// `benchmarks`, `hugging_face_id`, …
    pub further: Vec<(String, Json)>,
}

/// What goes in and comes out of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Architecture {
    /// `input->output`, such as `text+image->text`.
    pub modality: Option<String>,
    /// Kinds of input.
    pub input_modalities: Vec<String>,
    /// Kinds of output; names outside [`Modality`] are kept and count only under `all`.
    pub output_modalities: Vec<String>,
    /// The tokenizer's family.
    pub tokenizer: Option<String>,
    /// The instruction format.
    pub instruct_type: Option<String>,
}

impl Architecture {
    /// The kinds of output that a filter can name.
    pub fn outputs(&self) -> ModalitySet {
        self.output_modalities.iter().filter_map(|name| Modality::from_name(name)).collect()
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
    /// Further prices by name (`input_cache_read`, `web_search`, …), in the order in which they came.
    pub further: Vec<(String, Price)>,
    /// Rules by which prices change with the size or time of a request: a JSON array, shown as it is.
    pub overrides: Option<Json>,
    /// False where nobody has named a price, so that the zeros are no prices.
    pub is_known: bool,
}

impl Pricing {
    /// A price for tokens in and out, and nothing else.
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

    /// Nobody has named a price: shown as zero.
    pub fn unknown() -> Self {
        Self { is_known: false, ..Self::per_token(Price::ZERO, Price::ZERO) }
    }

    /// True where the price for tokens depends on what is routed to, so that no charge can be computed.
    pub fn is_variable(&self) -> bool {
        self.prompt.is_variable() || self.completion.is_variable()
    }
}

/// Figures of the best provider of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopProvider {
    /// Context window in tokens.
    pub context_length: Option<u64>,
    /// True where the provider filters content.
    pub is_moderated: bool,
    /// Most output tokens.
    pub max_completion_tokens: Option<u64>,
}

/// What an alias row stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasTarget {
    /// Display name of the target.
    pub name: String,
    /// Id or canonical slug of the target.
    pub slug: ModelId,
}

impl Model {
    /// A row for a model of which only an endpoint is known: `text->decisions` at that price. Sizes that nobody knows
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

    /// True where it answers Decisions requests.
    pub fn serves_decisions(&self) -> bool {
        self.architecture.outputs().contains(Modality::Decisions)
    }
}
