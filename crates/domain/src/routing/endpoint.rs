//! Endpoints: a model as one provider serves it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{DynamicVariant, Model, ModelId, SANDBOX_AUTHOR};
use crate::money::Price;

/// The short name of a provider: 1 to 64 characters of `a-z 0-9 -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderSlug(String);

/// Not a provider's slug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a provider slug is 1 to 64 characters of a-z 0-9 -")]
pub struct InvalidProviderSlug;

impl std::str::FromStr for ProviderSlug {
    type Err = InvalidProviderSlug;

    fn from_str(text: &str) -> Result<Self, InvalidProviderSlug> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidProviderSlug) }
    }
}

impl ProviderSlug {
    /// The slug.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The protocol that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `state` and a map of `noul | choice | score` questions over HTTP.
    SystemOne,
    /// Answers made inside this process.
    Sandbox,
}

impl Wire {
    /// Its name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SystemOne => "system-one",
            Self::Sandbox => "sandbox",
        }
    }

    /// True where questions of a form that this service does not know can travel verbatim.
    pub fn takes_opaque_questions(self) -> bool {
        match self {
            Self::SystemOne | Self::Sandbox => true,
        }
    }
}

/// Prices in USD per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPrices {
    /// Per input token.
    pub prompt: Price,
    /// Per output token.
    pub completion: Price,
}

/// One model as one provider serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The model's name in the catalogue.
    pub model: ModelId,
    /// The provider's slug.
    pub provider: ProviderSlug,
    /// The provider's display name.
    pub provider_name: String,
    /// The protocol.
    pub wire: Wire,
    /// The model's name at the provider.
    pub upstream_model: String,
    /// What is charged; `None` means what the catalogue's row says.
    pub prices: Option<TokenPrices>,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// Tokens that the provider may add to what the body's length explains, for bounding a charge.
    pub token_overhead: u64,
}

/// All endpoints, by model, in the order of the configuration.
#[derive(Debug, Default)]
pub struct EndpointDirectory {
    by_model: HashMap<ModelId, Vec<Arc<Endpoint>>>,
    order: Vec<Arc<Endpoint>>,
}

impl EndpointDirectory {
    /// Sorts endpoints by their models.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        let order: Vec<Arc<Endpoint>> = endpoints.into_iter().map(Arc::new).collect();
        let mut by_model: HashMap<ModelId, Vec<Arc<Endpoint>>> = HashMap::new();
        for endpoint in &order {
            by_model.entry(endpoint.model.clone()).or_default().push(Arc::clone(endpoint));
        }
        Self { by_model, order }
    }

    /// Every endpoint.
    pub fn all(&self) -> &[Arc<Endpoint>] {
        &self.order
    }

    /// What can serve a catalogue row: endpoints configured for its id, else for its canonical slug. A sandbox
    /// endpoint serves its own id only.
    pub fn for_model(&self, model: &Model) -> &[Arc<Endpoint>] {
        let by_id = self.by_model.get(&model.id);
        let by_slug = || {
            let shares_nothing = model.id.variant().is_none() && model.canonical_slug.author() != SANDBOX_AUTHOR;
            shares_nothing.then(|| self.by_model.get(&model.canonical_slug)).flatten()
        };
        by_id.or_else(by_slug).map_or(&[], Vec::as_slice)
    }

    /// The sandbox endpoint of exactly this name (in any case), whether or not the catalogue has a row for it.
    pub fn sandbox(&self, name: &str) -> Option<&Arc<Endpoint>> {
        let id: ModelId = name.parse().ok()?;
        self.by_model.get(&id)?.iter().find(|endpoint| endpoint.wire == Wire::Sandbox)
    }
}

/// The order in which candidates are tried: that of the configuration, or the cheapest first for `:floor`.
pub fn order_candidates(
    mut candidates: Vec<(Arc<Endpoint>, TokenPrices)>,
    dynamic: Option<DynamicVariant>,
) -> Vec<(Arc<Endpoint>, TokenPrices)> {
    if dynamic == Some(DynamicVariant::Floor) {
        candidates.sort_by_key(|(_, prices)| (prices.prompt, prices.completion));
    }
    candidates
}
