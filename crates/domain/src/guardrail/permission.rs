//! The models and providers that a guardrail permits.

use std::collections::HashSet;

use super::{DataPolicyRules, Guardrail};
use crate::ids::GuardrailId;
use crate::model::{CatalogueSnapshot, Model, ModelId};
use crate::money::Price;
use crate::routing::Candidate;

/// A rule that forbids a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guardrail {guardrail_id} forbids it by {rule}")]
pub struct Forbidden {
    /// The guardrail.
    pub guardrail_id: GuardrailId,
    /// The member of its record, such as `allowed_models`.
    pub rule: &'static str,
}

/// The permitted models and providers of one guardrail, compiled for checks on every request.
#[derive(Debug)]
pub(super) struct Permission {
    guardrail_id: GuardrailId,
    allowed_models: Option<HashSet<String>>,
    /// Slugs, and the ids that their models had when the list was written.
    ignored_models: HashSet<String>,
    allowed_providers: Option<HashSet<String>>,
    ignored_providers: HashSet<String>,
    data_policy: DataPolicyRules,
}

impl Permission {
    pub(super) fn new(guardrail: &Guardrail) -> Self {
        let set = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.iter().cloned().collect());
        let rules = &guardrail.rules;
        Self {
            guardrail_id: guardrail.id,
            allowed_models: set(&rules.allowed_models),
            ignored_models: rules.ignored_models.iter().flatten().chain(&rules.ignored_model_ids).cloned().collect(),
            allowed_providers: set(&rules.allowed_providers),
            ignored_providers: set(&rules.ignored_providers).unwrap_or_default(),
            data_policy: rules.data_policy,
        }
    }

    /// Returns true if a check needs the candidate's row of the catalogue.
    pub(super) fn needs_row(&self) -> bool {
        self.allowed_models.is_some() || !self.ignored_models.is_empty()
    }

    /// Checks whether a candidate may be tried. `row` is its row of the catalogue, which a sandbox model may lack.
    pub(super) fn permits(&self, candidate: &Candidate, named: &ModelNames<'_>) -> Result<(), Forbidden> {
        self.permits_names(named)?;
        let forbid = |rule| Err(Forbidden { guardrail_id: self.guardrail_id, rule });
        let provider = candidate.endpoint.provider.as_str();
        if self.allowed_providers.as_ref().is_some_and(|allowed| !allowed.contains(provider)) {
            return forbid("allowed_providers");
        }
        if self.ignored_providers.contains(provider) {
            return forbid("ignored_providers");
        }
        if let Some(rule) = self.violated_data_policy_rule(candidate) {
            return forbid(rule);
        }
        Ok(())
    }

    /// Checks whether the lists of models permit a model.
    pub(super) fn permits_names(&self, named: &ModelNames<'_>) -> Result<(), Forbidden> {
        let forbid = |rule| Err(Forbidden { guardrail_id: self.guardrail_id, rule });
        if self.allowed_models.as_ref().is_some_and(|allowed| !named.is_in(allowed)) {
            return forbid("allowed_models");
        }
        if !self.ignored_models.is_empty() && named.may_be_in(&self.ignored_models) {
            return forbid("ignored_models");
        }
        Ok(())
    }

    fn violated_data_policy_rule(&self, candidate: &Candidate) -> Option<&'static str> {
        let rules = &self.data_policy;
        let policy = candidate.endpoint.data_policy;
        // An endpoint with zero retention cannot train on its input, whatever its record says about training.
        if policy.zdr {
            return None;
        }
        let (own, name) = match candidate.model.author() {
            "anthropic" => (rules.enforce_zdr_anthropic, "enforce_zdr_anthropic"),
            "openai" => (rules.enforce_zdr_openai, "enforce_zdr_openai"),
            "google" => (rules.enforce_zdr_google, "enforce_zdr_google"),
            "x-ai" => (rules.enforce_zdr_xai, "enforce_zdr_xai"),
            _ => (rules.enforce_zdr_other, "enforce_zdr_other"),
        };
        match (own, rules.enforce_zdr) {
            (Some(true), _) => return Some(name),
            (None, Some(true)) => return Some("enforce_zdr"),
            _ => {}
        }
        let free = candidate.prices.prompt == Price::ZERO && candidate.prices.completion == Price::ZERO;
        // A candidate without a known price may be free or paid, so both rules apply to it.
        let unknown = !candidate.is_priced;
        let trains = |allowed: Option<bool>, concerned: bool| policy.collects && concerned && allowed == Some(false);
        if trains(rules.enable_paid_model_training, !free || unknown) {
            return Some("enable_paid_model_training");
        }
        trains(rules.enable_free_model_training, free || unknown).then_some("enable_free_model_training")
    }
}

/// The names of a model.
pub(super) struct ModelNames<'a> {
    id: &'a ModelId,
    catalogue: &'a CatalogueSnapshot,
    row: Option<&'a Model>,
}

impl<'a> ModelNames<'a> {
    /// Creates the names. `row` is the model's row of the catalogue, if it has one and a check needs it.
    pub(super) fn new(id: &'a ModelId, catalogue: &'a CatalogueSnapshot, row: Option<&'a Model>) -> Self {
        Self { id, catalogue, row }
    }

    /// Returns the canonical slug, which all variants of a model share. A model that the catalogue does not list has
    /// only its id.
    fn canonical(&self) -> &str {
        self.row.map_or(self.id.as_str(), |row| row.canonical_slug.as_str())
    }

    /// Returns true if the list contains this model: its slug, or a former slug that still resolves to it.
    fn is_in(&self, list: &HashSet<String>) -> bool {
        let still_means = |former: &str| {
            let found = self.catalogue.resolve(former);
            found.is_some_and(|found| found.model.canonical_slug.as_str() == self.canonical())
        };
        let mut former = self.row.into_iter().flat_map(|row| &row.renamed_from);
        list.contains(self.canonical()) || former.any(|name| list.contains(name.as_str()) && still_means(name.as_str()))
    }

    /// Returns true if the list may contain this model. A ban outlives a change of the catalogue's slugs.
    fn may_be_in(&self, list: &HashSet<String>) -> bool {
        let id = self.id;
        let former = self.row.into_iter().flat_map(|row| &row.renamed_from);
        let former = former.flat_map(|name| [name.as_str(), name.base()]);
        let mut names = former.chain([self.canonical(), id.as_str(), id.base()]);
        names.any(|name| list.contains(name))
    }
}

#[cfg(test)]
mod tests;
