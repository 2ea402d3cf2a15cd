//! What a key is under: the guardrail of its workspace and its own, put together and ready to be applied.
//!
//! Lists intersect, filters unite, a block weighs more than a redaction and that more than a flag.

use std::collections::HashSet;
use std::sync::Arc;

use super::filter::{Blocked, CompiledFilters, Filtered, InvalidFilters};
use super::permission::{Names, Permission};
use super::{Forbidden, Guardrail};
use crate::ids::GuardrailId;
use crate::model::CatalogueSnapshot;
use crate::question::ProviderInput;
use crate::routing::Candidate;
use crate::system::{CancelFlag, Cancelled};
use crate::usage::RequestLabels;

/// One or two guardrails that apply together.
#[derive(Debug)]
pub struct Policy {
    /// The workspace's first.
    guardrails: Vec<Guardrail>,
    permissions: Vec<Permission>,
    /// True where some permission cannot be answered without the catalogue's row.
    needs_row: bool,
    filters: CompiledFilters,
    /// The same filters for the labels of a request, which are redacted and never block.
    label_filters: CompiledFilters,
}

impl Policy {
    /// Puts guardrails together, the workspace's first. One that applies twice counts once.
    ///
    /// # Errors
    /// A pattern does not compile, which no guardrail that was ever accepted has.
    pub fn compile(mut guardrails: Vec<Guardrail>) -> Result<Self, InvalidFilters> {
        let mut seen = HashSet::new();
        guardrails.retain(|guardrail| seen.insert(guardrail.id));
        let filters = CompiledFilters::compile(guardrails.iter().map(|found| (found.id, &found.rules)))?;
        let permissions: Vec<Permission> = guardrails.iter().map(Permission::of).collect();
        let needs_row = permissions.iter().any(Permission::needs_row);
        let label_filters = filters.redacting();
        Ok(Self { guardrails, permissions, needs_row, filters, label_filters })
    }

    /// The guardrails, the workspace's first.
    pub fn guardrails(&self) -> &[Guardrail] {
        &self.guardrails
    }

    /// Their ids.
    pub fn ids(&self) -> Vec<GuardrailId> {
        self.guardrails.iter().map(|guardrail| guardrail.id).collect()
    }

    /// True where one of them limits money.
    pub fn limits_money(&self) -> bool {
        self.guardrails.iter().any(|guardrail| guardrail.budget.is_some())
    }

    /// Whether a candidate may be tried.
    ///
    /// # Errors
    /// The first rule that forbids it.
    pub fn permits(&self, candidate: &Candidate, catalogue: &CatalogueSnapshot) -> Result<(), Forbidden> {
        let id = candidate.model.as_str();
        let found = if self.needs_row { catalogue.resolve(id) } else { None };
        let row = found.as_ref().map(|found| &*found.model).filter(|row| row.id == candidate.model);
        let names = Names::new(candidate, catalogue, row);
        self.permissions.iter().try_for_each(|permission| permission.permits(candidate, &names))
    }

    /// How many filters there are; what it takes to look through a text grows with it.
    pub(crate) fn filter_count(&self) -> usize {
        self.filters.count()
    }

    /// Looks through every text of a provider input and every name in it. What is returned is what may be sent.
    ///
    /// # Errors
    /// A match of a filter that blocks.
    pub fn filter(&self, provider_input: &Arc<ProviderInput>) -> Result<Filtered, Blocked> {
        self.filters.apply(provider_input)
    }

    /// As [`Self::filter`], until it is cancelled.
    ///
    /// # Errors
    /// Cancelled; or a match of a filter that blocks.
    pub fn filter_until(
        &self,
        provider_input: &Arc<ProviderInput>,
        cancel: &CancelFlag,
    ) -> Result<Result<Filtered, Blocked>, Cancelled> {
        self.filters.apply_until(provider_input, cancel)
    }

    /// Returns the labels of a request as destinations of traces may see them.
    pub fn redact_labels(&self, labels: &RequestLabels) -> RequestLabels {
        self.label_filters.redact_labels(labels)
    }

    /// As [`Self::redact_labels`], until it is cancelled: the remaining labels are left out then.
    pub fn redact_labels_until(&self, labels: &RequestLabels, cancel: &CancelFlag) -> RequestLabels {
        self.label_filters.redact_labels_until(labels, cancel)
    }
}

#[cfg(test)]
mod tests;
