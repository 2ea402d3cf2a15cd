//! The record of a Decisions request, for who made it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::api_key::Principal;
use crate::ids::DecisionId;
use crate::model::{Catalogue, DynamicVariant, ModelId};
use crate::routing::EndpointDirectory;
use crate::usage::{FindRecord, GetGenerationError, UsageRecord};

/// A usage record and what its names mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The record.
    pub record: UsageRecord,
    /// What the caller's name for the model turned out to be, where it was another name than the model's id: an alias,
    /// a dated or former slug, a bare name, another spelling. A suffix that asks for a way of routing is no such name.
    pub alias_resolved: Option<ModelId>,
    /// Display names of the providers that the record names, by slug; a provider that is no longer configured has none.
    pub provider_names: HashMap<String, String>,
}

impl Generation {
    /// The display name of a provider, else its slug.
    pub fn provider_name<'a>(&'a self, slug: &'a str) -> &'a str {
        self.provider_names.get(slug).map_or(slug, String::as_str)
    }

    /// Display names of all who answered, separated by commas; of the last one tried where nobody did.
    pub fn provider_name_of_all(&self) -> String {
        let names: Vec<&str> = self.record.provider.split(',').map(|slug| self.provider_name(slug)).collect();
        names.join(", ")
    }
}

/// Reads the record of a Decisions request.
pub struct GetGeneration {
    records: FindRecord,
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
}

impl GetGeneration {
    /// Wires the ports.
    pub fn new(records: FindRecord, catalogue: Arc<dyn Catalogue>, endpoints: Arc<EndpointDirectory>) -> Self {
        Self { records, catalogue, endpoints }
    }

    /// An inference key reads the records of its workspace, a management key those of all. Which workspaces have a
    /// record of some id is nobody else's business: another's is not found.
    pub async fn execute(&self, caller: &Principal, id: &DecisionId) -> Result<Generation, GetGenerationError> {
        let found = self.records.execute(id).await?;
        let may_read = |record: &UsageRecord| match caller {
            Principal::Inference(key) => record.workspace_id == key.workspace_id(),
            Principal::Management(_) => true,
        };
        let record = found.filter(may_read).ok_or(GetGenerationError::NotFound)?;
        let named = |slug: &str| record.provider.split(',').any(|own| own == slug) || tried(&record, slug);
        let provider_names = self
            .endpoints
            .all()
            .iter()
            .filter(|endpoint| named(endpoint.provider.as_str()))
            .map(|endpoint| (endpoint.provider.to_string(), endpoint.provider_name.clone()))
            .collect();
        Ok(Generation { alias_resolved: self.alias_resolved(&record), provider_names, record })
    }

    /// By the record alone where it knows one model only, so that an alias that has moved on since is still told as it
    /// was; with several (fallback models), by what the name means today.
    fn alias_resolved(&self, record: &UsageRecord) -> Option<ModelId> {
        let lower = record.requested_model.to_ascii_lowercase();
        let stem = DynamicVariant::split(&lower).map_or(lower.as_str(), |(stem, _)| stem);
        let asked = || record.attempts.iter().map(|attempt| &attempt.model).chain([&record.model]);
        let is_name = |id: &ModelId| id.as_str() == lower || id.as_str() == stem;
        let snapshot = self.catalogue.snapshot();
        let today = snapshot.resolve(&lower).or_else(|| snapshot.resolve_bare(&lower)).map(|found| found.model);
        // Where another model was served under a name that is an id, that one was a fallback.
        if asked().any(is_name) || today.as_ref().is_some_and(|row| is_name(&row.id)) {
            return None;
        }
        if asked().all(|id| *id == record.model) {
            return Some(record.model.clone());
        }
        today.map(|row| row.id.clone()).filter(|today| asked().any(|id| id == today))
    }
}

fn tried(record: &UsageRecord, slug: &str) -> bool {
    record.attempts.iter().any(|attempt| attempt.provider == slug)
}

#[cfg(test)]
mod tests;
