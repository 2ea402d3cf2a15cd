//! Which models and providers a guardrail can name.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::InvalidGuardrail;
use crate::model::{Catalogue, CatalogueSnapshot, SANDBOX_AUTHOR};
use crate::routing::EndpointDirectory;

/// How many names an unknown one is answered with.
const NEAREST: usize = 3;
/// Most characters of an unknown name that are repeated.
const REPEATED_CHARS: usize = 100;

/// Models that somebody has named.
pub(super) struct NamedModels {
    /// Their canonical slugs, each once, in the order in which they are named first.
    pub(super) slugs: Vec<String>,
    /// Ids, without variants, of the rows that have one of these slugs; without those that are slugs themselves.
    pub(super) ids: Vec<String>,
}

/// The models of the catalogue and the providers of the configuration, by whatever they can be called.
#[derive(Clone)]
pub struct KnownNames {
    catalogue: Arc<dyn Catalogue>,
    endpoints: Arc<EndpointDirectory>,
}

impl KnownNames {
    /// Over the catalogue in force and the endpoints that are configured, the sandbox's included.
    pub fn new(catalogue: Arc<dyn Catalogue>, endpoints: Arc<EndpointDirectory>) -> Self {
        Self { catalogue, endpoints }
    }

    /// Models, by any of their names.
    pub(super) fn models(&self, member: &str, names: &[String]) -> Result<NamedModels, InvalidGuardrail> {
        let snapshot = self.catalogue.snapshot();
        let canonical = |name: &str| match snapshot.resolve(name).or_else(|| snapshot.resolve_bare(name)) {
            Some(found) => Some(found.model.canonical_slug.to_string()),
            // A sandbox model answers whether or not the catalogue shows it.
            None => self.endpoints.sandbox(name).map(|endpoint| endpoint.model.to_string()),
        };
        let slugs = each(member, names, canonical, |name| {
            (format!("{} is not a model of the catalogue", repeated(name)), snapshot.nearest(name, NEAREST, |_| true))
        })?;
        Ok(NamedModels { ids: ids(&snapshot, &slugs), slugs })
    }

    /// The slugs of providers, each once, in the order in which they are named first.
    pub(super) fn providers(&self, member: &str, names: &[String]) -> Result<Vec<String>, InvalidGuardrail> {
        let mut known: BTreeSet<&str> = self.endpoints.all().iter().map(|known| known.provider.as_str()).collect();
        // Named before the sandbox is switched on, or after it was switched off.
        known.insert(SANDBOX_AUTHOR);
        let slug = |name: &str| {
            let lower = name.to_ascii_lowercase();
            known.contains(lower.as_str()).then_some(lower)
        };
        each(member, names, slug, |name| {
            (format!("{} is not a provider that is configured here", repeated(name)), nearest(&known, name))
        })
    }
}

/// What rows with these canonical slugs are called beside them, without variants.
fn ids(snapshot: &CatalogueSnapshot, slugs: &[String]) -> Vec<String> {
    let slugs: HashSet<&str> = slugs.iter().map(String::as_str).collect();
    let rows = snapshot.rows().iter().filter(|row| row.alias_target.is_none());
    let of_these = rows.filter(|row| slugs.contains(row.canonical_slug.as_str()));
    let ids: BTreeSet<&str> = of_these.map(|row| row.id.base()).filter(|id| !slugs.contains(id)).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Resolves each name, or says which one nobody has and what is spelled like it.
fn each(
    member: &str,
    names: &[String],
    resolve: impl Fn(&str) -> Option<String>,
    unknown: impl Fn(&str) -> (String, Vec<String>),
) -> Result<Vec<String>, InvalidGuardrail> {
    let mut resolved: Vec<String> = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let Some(found) = resolve(name) else {
            let (mut fault, nearest) = unknown(name);
            if !nearest.is_empty() {
                fault = format!("{fault}; near it are: {}", nearest.join(", "));
            }
            return Err(InvalidGuardrail { path: format!("{member}[{index}]"), fault, nearest });
        };
        if !resolved.contains(&found) {
            resolved.push(found);
        }
    }
    Ok(resolved)
}

/// A name as it stands in a sentence: quoted, on one line and not longer than a line.
fn repeated(name: &str) -> String {
    let short: String = name.chars().take(REPEATED_CHARS).collect();
    let more = if short.len() < name.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

/// Up to three slugs that are spelled like `name`, the closest first.
fn nearest(known: &BTreeSet<&str>, name: &str) -> Vec<String> {
    let lower: String = name.to_ascii_lowercase().chars().take(64).collect();
    let mut close: Vec<(usize, &str)> = known
        .iter()
        .map(|slug| (strsim::levenshtein(&lower, slug), *slug))
        .filter(|(far, slug)| *far <= slug.len() / 2)
        .collect();
    close.sort_unstable();
    close.into_iter().take(NEAREST).map(|(_, slug)| slug.to_owned()).collect()
}
