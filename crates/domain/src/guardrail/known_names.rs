//! The models and providers that a guardrail can name.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::InvalidGuardrail;
use crate::model::{Catalogue, CatalogueSnapshot, NEAREST, SANDBOX_AUTHOR};
use crate::routing::{EndpointDirectory, nearest_providers};
use crate::text::nearest_names;

/// The highest number of characters of an unknown name that an error repeats.
const MAX_QUOTED_CHARS: usize = 100;

/// Models that a list names.
pub(super) struct NamedModels {
    /// Their canonical slugs, without duplicates, in the order of the list.
    pub(super) slugs: Vec<String>,
    /// The ids, without variants, of the rows with one of these slugs; ids that are slugs themselves are left out.
    pub(super) ids: Vec<String>,
}

/// The models of the catalogue and the configured providers, by all of their names.
#[derive(Clone)]
pub struct KnownNames {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
}

impl KnownNames {
    /// Creates the names from the current catalogue and the configured endpoints, the sandbox included.
    pub fn new(catalogue: Arc<dyn Catalogue>, endpoints: Arc<EndpointDirectory>) -> Self {
        Self { catalogue, endpoints }
    }

    /// Resolves models by any of their names.
    pub(super) fn models(&self, member: &str, names: &[String]) -> Result<NamedModels, InvalidGuardrail> {
        let snapshot = self.catalogue.snapshot();
        let canonical = |name: &str| match snapshot.resolve_any(name) {
            Some(found) => Some(found.model.canonical_slug.to_string()),
            // A sandbox model is callable even if the catalogue does not list it.
            None => self.endpoints.sandbox(name).map(|endpoint| endpoint.model.to_string()),
        };
        let slugs = resolve_each(member, names, canonical, |name| {
            (format!("{} is not a model of the catalogue", quote_name(name)), snapshot.nearest(name, NEAREST, |_| true))
        })?;
        Ok(NamedModels { ids: ids(&snapshot, &slugs), slugs })
    }

    /// Resolves the slugs of providers, without duplicates, in the order of the list.
    pub(super) fn providers(&self, member: &str, names: &[String]) -> Result<Vec<String>, InvalidGuardrail> {
        let mut known: BTreeSet<&str> = self.endpoints.all().iter().map(|known| known.provider.as_str()).collect();
        // A rule may name the sandbox before it is switched on or after it was switched off.
        known.insert(SANDBOX_AUTHOR);
        let slug = |name: &str| {
            let lower = name.to_ascii_lowercase();
            known.contains(lower.as_str()).then_some(lower)
        };
        resolve_each(member, names, slug, |name| {
            (
                format!("{} is not a configured provider", quote_name(name)),
                nearest_providers(known.iter().copied(), name),
            )
        })
    }
}

/// Returns the ids of the rows with these canonical slugs, without variants and without the slugs themselves.
fn ids(snapshot: &CatalogueSnapshot, slugs: &[String]) -> Vec<String> {
    let slugs: HashSet<&str> = slugs.iter().map(String::as_str).collect();
    let rows = snapshot.rows().iter().filter(|row| row.alias_target.is_none());
    let of_these = rows.filter(|row| slugs.contains(row.canonical_slug.as_str()));
    let ids: BTreeSet<&str> = of_these.map(|row| row.id.base()).filter(|id| !slugs.contains(id)).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Resolves each name; fails with the first unknown name and similar ones.
fn resolve_each(
    member: &str,
    names: &[String],
    resolve: impl Fn(&str) -> Option<String>,
    unknown: impl Fn(&str) -> (String, Vec<String>),
) -> Result<Vec<String>, InvalidGuardrail> {
    let mut resolved: Vec<String> = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let Some(found) = resolve(name) else {
            let (fault, nearest) = unknown(name);
            let fault = format!("{fault}{}", nearest_names(&nearest));
            return Err(InvalidGuardrail { path: format!("{member}[{index}]"), fault, nearest });
        };
        if !resolved.contains(&found) {
            resolved.push(found);
        }
    }
    Ok(resolved)
}

/// Quotes a name for an error message: on one line, and truncated.
fn quote_name(name: &str) -> String {
    let short: String = name.chars().take(MAX_QUOTED_CHARS).collect();
    let more = if short.len() < name.len() { "…" } else { "" };
    format!("{short:?}{more}")
}
