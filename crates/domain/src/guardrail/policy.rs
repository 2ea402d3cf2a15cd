//! The policy of a key: its workspace's guardrail and its own, merged and compiled.
//!
//! Lists intersect and filters unite. A block outranks a redaction, and a redaction outranks a flag.

use std::collections::HashSet;
use std::sync::Arc;

use super::filter::{Blocked, CompiledFilters, FilteredInput, InvalidFilters};
use super::permission::{ModelNames, Permission};
use super::{Forbidden, Guardrail};
use crate::ids::GuardrailId;
use crate::model::{CatalogueSnapshot, Model};
use crate::question::ProviderInput;
use crate::routing::{Candidate, Endpoint};
use crate::system::{CancelFlag, Cancelled};
use crate::usage::RequestLabels;

/// One or two guardrails that apply together.
#[derive(Debug)]
pub struct Policy {
    /// The guardrails, the workspace's first.
    guardrails: Vec<Guardrail>,
    permissions: Vec<Permission>,
    /// True if some check needs the candidate's row of the catalogue.
    needs_row: bool,
    filters: CompiledFilters,
    /// The same filters for the labels of a request, which are redacted and never blocked.
    label_filters: CompiledFilters,
}

impl Policy {
    /// Merges guardrails, the workspace's first. A duplicate guardrail counts once.
    ///
    /// # Errors
    /// Fails if a pattern does not compile. Accepted guardrails have only patterns that compile.
    pub fn compile(mut guardrails: Vec<Guardrail>) -> Result<Self, InvalidFilters> {
        let mut seen = HashSet::new();
        guardrails.retain(|guardrail| seen.insert(guardrail.id));
        let filters = CompiledFilters::compile(guardrails.iter().map(|found| (found.id, &found.rules)))?;
        let permissions: Vec<Permission> = guardrails.iter().map(Permission::new).collect();
        let needs_row = permissions.iter().any(Permission::needs_row);
        let label_filters = filters.redacting();
        Ok(Self { guardrails, permissions, needs_row, filters, label_filters })
    }

    /// Returns the guardrails, the workspace's first.
    pub fn guardrails(&self) -> &[Guardrail] {
        &self.guardrails
    }

    /// Returns the ids of the guardrails.
    pub fn ids(&self) -> Vec<GuardrailId> {
        self.guardrails.iter().map(|guardrail| guardrail.id).collect()
    }

    /// Returns true if one of them has a budget.
    pub fn limits_money(&self) -> bool {
        self.guardrails.iter().any(|guardrail| guardrail.budget.is_some())
    }

    /// Checks whether a candidate may be tried.
    ///
    /// # Errors
    /// Returns the first rule that forbids it.
    pub fn permits(&self, candidate: &Candidate, catalogue: &CatalogueSnapshot) -> Result<(), Forbidden> {
        let id = candidate.model.as_str();
        let found = if self.needs_row { catalogue.resolve(id) } else { None };
        let row = found.as_ref().map(|found| &*found.model).filter(|row| row.id == candidate.model);
        let names = ModelNames::new(&candidate.model, catalogue, row);
        self.permissions.iter().try_for_each(|permission| permission.permits(candidate, &names))
    }

    /// Returns true if one of the model's endpoints may be tried. A model without endpoints is judged by its names. `row`
    /// is a concrete row of the catalogue.
    pub(super) fn permits_model(
        &self,
        row: &Model,
        endpoints: &[Arc<Endpoint>],
        catalogue: &CatalogueSnapshot,
    ) -> bool {
        if endpoints.is_empty() {
            let names = ModelNames::new(&row.id, catalogue, Some(row));
            return self.permissions.iter().all(|permission| permission.permits_names(&names).is_ok());
        }
        let mut candidates =
            endpoints.iter().filter_map(|endpoint| Candidate::new(&row.id, endpoint, Some(&row.pricing)));
        candidates.any(|candidate| self.permits(&candidate, catalogue).is_ok())
    }

    /// Returns the number of filters. The cost of a scan grows with it.
    pub(crate) fn filter_count(&self) -> usize {
        self.filters.count()
    }

    /// Scans all text and all names of a provider input. Returns the input that may be sent.
    ///
    /// # Errors
    /// Returns the match of a filter that blocks.
    pub fn filter(&self, provider_input: &Arc<ProviderInput>) -> Result<FilteredInput, Blocked> {
        self.filters.apply(provider_input)
    }

    /// Filters like [`Self::filter`], until it is cancelled.
    ///
    /// # Errors
    /// Fails if it is cancelled or a filter blocks.
    pub fn filter_until(
        &self,
        provider_input: &Arc<ProviderInput>,
        cancel: &CancelFlag,
    ) -> Result<Result<FilteredInput, Blocked>, Cancelled> {
        self.filters.apply_until(provider_input, cancel)
    }

    /// Returns the labels of a request with all matches redacted, for trace destinations.
    pub fn redact_labels(&self, labels: &RequestLabels) -> RequestLabels {
        self.label_filters.redact_labels(labels)
    }

    /// Redacts like [`Self::redact_labels`], until it is cancelled. The remaining labels are then left out.
    pub fn redact_labels_until(&self, labels: &RequestLabels, cancel: &CancelFlag) -> RequestLabels {
        self.label_filters.redact_labels_until(labels, cancel)
    }
}

#[cfg(test)]
mod tests;
