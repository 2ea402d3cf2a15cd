//! Reads the usage record of a Decisions request.

mod find_record;

use std::collections::HashMap;
use std::sync::Arc;

pub use self::find_record::FindRecord;
use crate::api_key::Principal;
use crate::error::{ErrorKind, StoreError};
use crate::ids::DecisionId;
use crate::model::{Catalogue, DynamicVariant, ModelId};
use crate::routing::EndpointDirectory;
use crate::usage::UsageRecord;

/// A usage record with resolved names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The record.
    pub record: UsageRecord,
    /// The resolved model, if the client used another name than its id: an alias, a dated or former slug, a bare name
    /// or another spelling. A routing suffix alone is not another name.
    pub alias_resolved: Option<ModelId>,
    /// The display names of the record's providers, by slug, except providers that are no longer configured.
    pub provider_names: HashMap<String, String>,
}

impl Generation {
    /// Returns the display name of a provider, else its slug.
    pub fn provider_name<'a>(&'a self, slug: &'a str) -> &'a str {
        self.provider_names.get(slug).map_or(slug, String::as_str)
    }

    /// Returns the display names of the providers that answered, separated by commas. Without an answer, returns that
    /// of the last provider tried.
    pub fn provider_name_of_all(&self) -> String {
        let names: Vec<&str> = self.record.provider.split(',').map(|slug| self.provider_name(slug)).collect();
        names.join(", ")
    }
}

/// The error of reading the usage record of a Decisions request.
#[derive(Debug, thiserror::Error)]
pub enum GetGenerationError {
    /// The record does not exist, or belongs to another workspace.
    #[error("usage record not found")]
    NotFound,
    /// The store failed.
    #[error("the usage store failed")]
    Store(#[from] StoreError),
}

impl GetGenerationError {
    /// Returns the error kind.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::NotFound,
            Self::Store(error) => error.kind(),
        }
    }
}

/// Reads the record of a Decisions request.
pub struct GetGeneration {
    records: FindRecord,
    names: GenerationNames,
}

impl GetGeneration {
    /// Creates the use case.
    pub fn new(records: FindRecord, names: GenerationNames) -> Self {
        Self { records, names }
    }

    /// Reads a record. An inference key reads its own records, a management key those of the workspaces in
    /// its scope. A record of another workspace is not found, so that its existence is not revealed.
    pub async fn execute(&self, caller: &Principal, id: &DecisionId) -> Result<Generation, GetGenerationError> {
        let found = self.records.execute(id).await?;
        let may_read = |record: &UsageRecord| match caller {
            Principal::Inference(key) => record.api_key == key.id(),
            Principal::Management(key) => key.scope().contains(record.workspace_id),
            Principal::Operator(by) => by.sees(record.workspace_id),
        };
        let record = found.filter(may_read).ok_or(GetGenerationError::NotFound)?;
        Ok(self.names.resolve(record))
    }
}

/// Resolves the names in usage records.
#[derive(Clone)]
pub struct GenerationNames {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
}

impl GenerationNames {
    /// Wires the ports.
    pub fn new(catalogue: Arc<dyn Catalogue>, endpoints: Arc<EndpointDirectory>) -> Self {
        Self { catalogue, endpoints }
    }

    /// Resolves the names in a record.
    pub fn resolve(&self, record: UsageRecord) -> Generation {
        let named = |slug: &str| record.provider.split(',').any(|own| own == slug) || was_tried(&record, slug);
        let provider_names = self
            .endpoints
            .all()
            .iter()
            .filter(|endpoint| named(endpoint.provider.as_str()))
            .map(|endpoint| (endpoint.provider.to_string(), endpoint.provider_name.clone()))
            .collect();
        Generation { alias_resolved: self.alias_resolved(&record), provider_names, record }
    }

    /// Resolves the requested name. If the record contains one model, returns that one, even if the alias has changed
    /// since. With several (fallback models), resolves the name in the current catalogue.
    fn alias_resolved(&self, record: &UsageRecord) -> Option<ModelId> {
        let lower = record.requested_model.to_ascii_lowercase();
        let stem = DynamicVariant::split(&lower).map_or(lower.as_str(), |(stem, _)| stem);
        let attempted_models = || record.attempts.iter().map(|attempt| &attempt.model).chain([&record.model]);
        let is_name = |id: &ModelId| id.as_str() == lower || id.as_str() == stem;
        let snapshot = self.catalogue.snapshot();
        let today = snapshot.resolve_any(&lower).map(|found| found.model);
        // The name is an id, so any other served model was a fallback.
        if attempted_models().any(is_name) || today.as_ref().is_some_and(|row| is_name(&row.id)) {
            return None;
        }
        if attempted_models().all(|id| *id == record.model) {
            return Some(record.model.clone());
        }
        today.map(|row| row.id.clone()).filter(|today| attempted_models().any(|id| id == today))
    }
}

fn was_tried(record: &UsageRecord, slug: &str) -> bool {
    record.attempts.iter().any(|attempt| *attempt.provider == *slug)
}

#[cfg(test)]
mod tests;
