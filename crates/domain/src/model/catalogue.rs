//! The immutable snapshot of the catalogue, and the stores of its rows.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use super::resolve::{self, Names};
use super::{CatalogueViolation, DynamicVariant, ModalityFilter, ModalitySet, Model, ModelId};
use crate::audit::AuditDraft;
use crate::error::StoreError;

/// An immutable state of the catalogue. Reads take no lock.
#[derive(Debug, Default)]
pub struct CatalogueSnapshot {
    rows: Vec<Arc<Model>>,
    outputs: Vec<ModalitySet>,
    names: Names,
}

/// The model that a name resolves to.
#[derive(Debug, Clone)]
pub struct ResolvedModel {
    /// The concrete row (never an alias row).
    pub model: Arc<Model>,
    /// The index of the row in [`CatalogueSnapshot::rows`].
    pub index: usize,
    /// The dynamic suffix of the name.
    pub dynamic: Option<DynamicVariant>,
}

impl CatalogueSnapshot {
    /// Builds a snapshot. A row with a duplicate id, or an alias without target, is not resolvable, so that a running
    /// gateway keeps the other rows. Imports reject such rows by [`CatalogueSnapshot::check`].
    pub fn build(rows: Vec<Model>) -> Self {
        let rows: Vec<Arc<Model>> = rows.into_iter().map(Arc::new).collect();
        let outputs = rows.iter().map(|row| row.architecture.outputs()).collect();
        let names = resolve::index(&rows);
        Self { rows, outputs, names }
    }

    /// Validates rows before an import.
    pub fn check(rows: &[Model]) -> Result<(), CatalogueViolation> {
        resolve::check(rows)
    }

    /// Returns all rows, including aliases, in the catalogue's order.
    pub fn rows(&self) -> &[Arc<Model>] {
        &self.rows
    }

    /// Resolves any name that a request may use: one of [`Self::resolve`], else one without an author.
    pub fn resolve_any(&self, name: &str) -> Option<ResolvedModel> {
        self.resolve(name).or_else(|| self.resolve_bare(name))
    }

    /// Resolves a name in any case: an id, a dated canonical slug (with a variant or without), a renamed slug, a
    /// `~author/family-latest` alias, each with a dynamic suffix or without.
    pub fn resolve(&self, name: &str) -> Option<ResolvedModel> {
        if name.len() > 256 {
            return None;
        }
        let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) };
        if let Some(index) = self.names.find(&lower) {
            return Some(self.at(index, None));
        }
        let (stem, dynamic) = DynamicVariant::split(&lower)?;
        self.names.find(stem).map(|index| self.at(index, Some(dynamic)))
    }

    /// Resolves a name without an author, in any case, among the models that answer Decisions requests: the part after
    /// the slash of a name that [`Self::resolve`] knows, with or without a dynamic suffix. Spellings with dashes for
    /// dots have the lowest priority. Returns `None` if several authors have such a model, none of them System One's,
    /// and for sandbox models, which require their full names.
    fn resolve_bare(&self, name: &str) -> Option<ResolvedModel> {
        if name.len() > 256 {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        if let Some(index) = self.names.find_bare(&lower) {
            return Some(self.at(index, None));
        }
        let (stem, dynamic) = DynamicVariant::split(&lower)?;
        self.names.find_bare(stem).map(|index| self.at(index, Some(dynamic)))
    }

    fn at(&self, index: usize, dynamic: Option<DynamicVariant>) -> ResolvedModel {
        ResolvedModel { model: Arc::clone(&self.rows[index]), index, dynamic }
    }

    /// Returns the indices in [`Self::rows`] of the rows that match the filter, in order.
    pub fn select(&self, filter: ModalityFilter) -> impl Iterator<Item = usize> {
        let passes = move |outputs: &ModalitySet| match filter {
            ModalityFilter::All => true,
            ModalityFilter::AnyOf(wanted) => outputs.intersects(wanted),
        };
        self.outputs.iter().enumerate().filter(move |(_, outputs)| passes(outputs)).map(|(index, _)| index)
    }

    /// Returns the concrete row of a row of this snapshot: itself, or the target of an alias. An alias without a target
    /// has none.
    pub(super) fn concrete(&self, row: &Arc<Model>) -> Option<Arc<Model>> {
        match row.alias_target {
            None => Some(Arc::clone(row)),
            Some(_) => self.resolve(row.id.as_str()).map(|target| target.model),
        }
    }

    /// Returns up to `most` ids of concrete rows that `keep` accepts, by edit distance to `name`. Ids farther than half
    /// of their length are left out.
    pub fn nearest(&self, name: &str, most: usize, keep: impl Fn(&Model) -> bool) -> Vec<String> {
        self.by_distance(name, most, |distance, id| distance <= id.len() / 2, keep)
    }

    /// Returns the ids of [`Self::nearest`]; if there are none, the nearest ids at any distance.
    pub fn closest(&self, name: &str, most: usize, keep: impl Fn(&Model) -> bool) -> Vec<String> {
        let near = self.nearest(name, most, &keep);
        if near.is_empty() { self.by_distance(name, most, |_, _| true, keep) } else { near }
    }

    fn by_distance(
        &self,
        name: &str,
        most: usize,
        is_close: impl Fn(usize, &str) -> bool,
        keep: impl Fn(&Model) -> bool,
    ) -> Vec<String> {
        let lower: String = name.to_ascii_lowercase().chars().take(256).collect();
        let slug = |id: &str| id.split_once('/').map_or(id.to_owned(), |(_, slug)| slug.to_owned());
        let wanted_slug = slug(&lower);
        let mut close: Vec<(usize, &str)> = self
            .rows
            .iter()
            .filter(|row| row.alias_target.is_none() && keep(row))
            .filter_map(|row| {
                let id = row.id.as_str();
                let whole = strsim::levenshtein(&lower, id);
                // The author may be wrong or missing.
                let by_slug = strsim::levenshtein(&wanted_slug, &slug(id));
                let distance = if by_slug <= slug(id).len() / 3 { whole.min(by_slug + 1) } else { whole };
                is_close(distance, id).then_some((distance, id))
            })
            .collect();
        close.sort_unstable();
        close.truncate(most);
        close.into_iter().map(|(_, id)| id.to_owned()).collect()
    }
}

/// The source of the current snapshot.
///
/// # Contract
/// - MUST NOT block, lock or do I/O: it is called on every catalogue read.
/// - A snapshot is immutable; a newer one replaces it.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Catalogue: Send + Sync {
    /// Returns the current snapshot.
    fn snapshot(&self) -> Arc<CatalogueSnapshot>;
}

/// A set of changes to the stored rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogueChange {
    /// Rows to add, or to replace by id.
    pub upsert: Vec<Model>,
    /// Ids of rows to remove.
    pub remove: Vec<ModelId>,
}

/// Stores the rows of the catalogue.
///
/// # Contract
/// - Every method is one transaction.
/// - `apply` MUST write [`crate::change_feed::ChangeSubject::Catalogue`] to the change feed, and its audit entry, in
///   the same transaction.
/// - `list` returns rows as they were stored, opaque JSON byte for byte, in insertion order (an updated row keeps its
///   position).
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ModelRepository: Send + Sync {
    /// Returns all rows.
    async fn list(&self) -> Result<Vec<Model>, StoreError>;

    /// Returns the version of the catalogue: the number of its newest change in the change feed; 0 where it was never
    /// changed.
    async fn version(&self) -> Result<u64, StoreError>;

    /// Applies `change` if the catalogue still has `expected_version`. Otherwise changes nothing and returns false.
    async fn apply(
        &self,
        change: &CatalogueChange,
        expected_version: u64,
        audit: &AuditDraft,
    ) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AliasTarget, Pricing};
    use crate::money::Price;
    use proptest::prelude::*;
    use rstest::rstest;

    fn row(id: &str, canonical: &str) -> Model {
        let pricing = Pricing::per_token(Price::ZERO, Price::ZERO);
        Model { canonical_slug: canonical.parse().unwrap(), ..Model::minimal(id.parse().unwrap(), pricing) }
    }

    fn alias(id: &str, target: &str) -> Model {
        let target = AliasTarget { name: target.to_owned(), slug: target.parse().unwrap() };
        Model { alias_target: Some(target), ..row(id, id) }
    }

    fn catalogue() -> CatalogueSnapshot {
        let mut renamed = row("acme/judge-2.5", "acme/judge-2.5-20260901");
        renamed.renamed_from = vec!["acme/judge-next".parse().unwrap()];
        CatalogueSnapshot::build(vec![
            renamed,
            row("acme/judge-2.5:free", "acme/judge-2.5-20260901"),
            row("acme/judge-2.5:batch", "acme/judge-2.5-20260901"),
            row("acme/lone:thinking", "acme/lone-20260101"),
            row("acme/lone:free", "acme/lone-20260101"),
            row("sandbox/judge-3.5", "sandbox/judge-3.5"),
            alias("~acme/judge-latest", "~acme/judge-stable"),
            alias("~acme/judge-stable", "acme/judge-2.5-20260901"),
        ])
    }

    #[rstest]
    #[case::id("acme/judge-2.5", "acme/judge-2.5")]
    #[case::case("ACME/Judge-2.5", "acme/judge-2.5")]
    #[case::dated("acme/judge-2.5-20260901", "acme/judge-2.5")]
    #[case::static_variant("acme/judge-2.5:free", "acme/judge-2.5:free")]
    #[case::dated_with_variant("acme/judge-2.5-20260901:BATCH", "acme/judge-2.5:batch")]
    #[case::no_base_row_first_variant_by_id("acme/lone-20260101", "acme/lone:free")]
    #[case::renamed("acme/judge-next", "acme/judge-2.5")]
    #[case::renamed_with_variant("acme/judge-next:free", "acme/judge-2.5:free")]
    #[case::dashes_for_dots("acme/judge-2-5", "acme/judge-2.5")]
    #[case::alias_of_alias("~acme/judge-latest", "acme/judge-2.5")]
    #[case::dynamic("acme/judge-2.5:nitro", "acme/judge-2.5")]
    #[case::dynamic_on_dated("acme/judge-2.5-20260901:floor", "acme/judge-2.5")]
    #[case::dynamic_on_alias("~acme/judge-latest:online", "acme/judge-2.5")]
    #[case::dynamic_on_renamed("acme/judge-next:exacto", "acme/judge-2.5")]
    fn name_resolves_to_id(#[case] name: &str, #[case] id: &str) {
        assert_eq!(catalogue().resolve(name).unwrap().model.id.as_str(), id);
    }

    #[rstest]
    #[case::variant_without_row("acme/judge-2.5:thinking")]
    #[case::unknown_suffix("acme/judge-2.5:turbo")]
    #[case::dynamic_without_base("acme/lone:nitro")]
    #[case::alias_needs_its_tilde("acme/judge-latest")]
    #[case::no_slash("judge-2.5")]
    #[case::empty("")]
    #[case::only_suffix(":nitro")]
    #[case::sandbox_only_by_its_own_name("sandbox/judge-3-5")]
    #[case::prefix("acme/judge")]
    fn name_does_not_resolve(#[case] name: &str) {
        assert!(catalogue().resolve(name).is_none());
    }

    fn bare_catalogue() -> CatalogueSnapshot {
        let writes = |id: &str| {
            let mut row = row(id, id);
            row.architecture.output_modalities = vec!["text".to_owned()];
            row
        };
        let mut renamed = row("acme/judge-2.5", "acme/judge-2.5-20260901");
        renamed.renamed_from = vec!["elsewhere/judge-2.5".parse().unwrap(), "acme/judge-next".parse().unwrap()];
        CatalogueSnapshot::build(vec![
            renamed,
            row("acme/judge-2.5:free", "acme/judge-2.5-20260901"),
            row("typesafe/jev-1.13", "typesafe/jev-1.13-20260917"),
            alias("~typesafe/jev-latest", "typesafe/jev-1.13"),
            row("sandbox/decider", "sandbox/decider"),
            writes("acme/writer"),
            writes("rival/jev-1.13"),
            row("acme/shared", "acme/shared"),
            row("rival/shared", "rival/shared"),
            row("acme/common", "acme/common"),
            row("typesafe/common", "typesafe/common"),
            alias("~acme/common", "rival/shared"),
            row("rival/exact-1-0", "rival/exact-1-0"),
            row("typesafe/exact-1.0", "typesafe/exact-1.0"),
            row("acme/either", "acme/either"),
            alias("~acme/either", "rival/shared"),
            row("acme/favoured", "acme/favoured"),
            alias("~typesafe/favoured", "typesafe/common"),
        ])
    }

    #[rstest]
    #[case::slug("jev-1.13", "typesafe/jev-1.13")]
    #[case::case("JEV-1.13", "typesafe/jev-1.13")]
    #[case::dashes_for_dots("jev-1-13", "typesafe/jev-1.13")]
    #[case::dated("jev-1.13-20260917", "typesafe/jev-1.13")]
    #[case::alias("jev-latest", "typesafe/jev-1.13")]
    #[case::dynamic("jev-latest:nitro", "typesafe/jev-1.13")]
    #[case::one_row_under_two_authors("judge-2.5", "acme/judge-2.5")]
    #[case::variant("judge-2.5:free", "acme/judge-2.5:free")]
    #[case::renamed("judge-next", "acme/judge-2.5")]
    #[case::system_one_s_author_first("common", "typesafe/common")]
    #[case::its_alias_as_well("favoured", "typesafe/common")]
    #[case::a_dashed_spelling_comes_last("exact-1-0", "rival/exact-1-0")]
    #[case::a_row_before_an_alias_of_its_author("either", "acme/either")]
    fn bare_name_resolves(#[case] name: &str, #[case] id: &str) {
        assert_eq!(bare_catalogue().resolve_bare(name).unwrap().model.id.as_str(), id);
    }

    #[rstest]
    #[case::several_authors("shared")]
    #[case::the_sandbox("decider")]
    #[case::other_outputs("writer")]
    #[case::whole_name("typesafe/jev-1.13")]
    #[case::with_a_slash_before_it("/jev-1.13")]
    #[case::only_suffix(":nitro")]
    #[case::empty("")]
    fn bare_name_does_not_resolve(#[case] name: &str) {
        assert!(bare_catalogue().resolve_bare(name).is_none());
    }

    #[test]
    fn bare_name_keeps_its_dynamic_suffix() {
        assert_eq!(bare_catalogue().resolve_bare("jev-1.13:floor").unwrap().dynamic, Some(DynamicVariant::Floor));
    }

    #[test]
    fn select_returns_rows_with_one_of_the_outputs() {
        let snapshot = catalogue();
        assert_eq!(snapshot.select(ModalityFilter::All).count(), snapshot.rows().len());
        assert_eq!(snapshot.select("decisions,text".parse().unwrap()).count(), 8);
        assert_eq!(snapshot.select(ModalityFilter::default()).count(), 0);
    }

    #[test]
    fn check_names_invalid_rows() {
        let check = |rows: &[Model]| CatalogueSnapshot::check(rows).unwrap_err().to_string();
        assert!(check(&[row("a/b", "a/b"), row("a/b", "a/b")]).contains("more than once"));
        assert!(check(&[alias("~a/x", "a/missing")]).contains("not in the catalogue"));
        assert!(check(&[alias("~a/x", "~a/y"), alias("~a/y", "~a/x")]).contains("an alias of itself"));
        assert!(check(&[alias("~a/x", "sandbox/y"), row("sandbox/y", "sandbox/y")]).contains("sandbox"));
        assert!(CatalogueSnapshot::check(&[row("a/b", "a/b"), alias("~a/x", "~a/y"), alias("~a/y", "a/b")]).is_ok());
    }

    #[test]
    fn snapshot_keeps_valid_rows_beside_invalid_ones() {
        let snapshot = CatalogueSnapshot::build(vec![row("a/b", "a/b"), alias("~a/x", "~a/y"), alias("~a/y", "~a/x")]);
        assert!(snapshot.resolve("a/b").is_some());
        assert!(snapshot.resolve("~a/x").is_none());
    }

    #[test]
    fn nearest_returns_similar_names() {
        assert_eq!(catalogue().nearest("acme/jugde-2.5", 1, |_| true), ["acme/judge-2.5"]);
        assert_eq!(catalogue().nearest("judge-2.5", 1, |_| true), ["acme/judge-2.5"]);
        assert!(catalogue().nearest("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", 3, |_| true).is_empty());
        assert_eq!(catalogue().closest("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", 3, |_| true).len(), 3);
        assert_eq!(catalogue().closest("acme/jugde-2.5", 1, |_| true), ["acme/judge-2.5"]);
    }

    proptest! {
        #[test]
        fn resolve_never_panics(name in ".{0,300}") {
            let _ = catalogue().resolve(&name);
            let _ = catalogue().resolve_bare(&name);
            let _ = catalogue().nearest(&name, 3, |_| true);
        }

        #[test]
        fn every_row_resolves_by_its_id(index in 0_usize..6) {
            let snapshot = catalogue();
            let row = &snapshot.rows()[index];
            prop_assert_eq!(&snapshot.resolve(row.id.as_str()).unwrap().model.id, &row.id);
        }
    }
}
