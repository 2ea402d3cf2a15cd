//! The catalogue's rows, filtered, sorted and in pages.

use std::ops::Range;
use std::sync::Arc;

use super::{CallableModels, Catalogue, CatalogueSnapshot, ModalityFilter, Model, ModelFilter, ModelSort, Visibility};

/// The page size is zero or too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("limit must be 1 to {}", Page::MAX_LIMIT)]
pub struct InvalidPageLimit;

/// A page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    offset: usize,
    limit: usize,
}

impl Page {
    /// The most rows of a page.
    pub const MAX_LIMIT: usize = 1000;
    /// The default rows of a page.
    const LIMIT: usize = 500;

    /// Creates a page. Returns `None`, the whole list, if neither parameter is given.
    ///
    /// # Errors
    /// The limit is not 1 to [`Self::MAX_LIMIT`].
    pub fn of(offset: Option<usize>, limit: Option<usize>) -> Result<Option<Self>, InvalidPageLimit> {
        if limit.is_some_and(|limit| !(1..=Self::MAX_LIMIT).contains(&limit)) {
            return Err(InvalidPageLimit);
        }
        let page = Self { offset: offset.unwrap_or(0), limit: limit.unwrap_or(Self::LIMIT) };
        Ok((offset.is_some() || limit.is_some()).then_some(page))
    }

    fn of_length(self, length: usize) -> Range<usize> {
        self.offset.min(length)..self.offset.saturating_add(self.limit).min(length)
    }
}

/// A request for a list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelListRequest {
    /// The filter.
    pub filter: ModelFilter,
    /// The models that the list shows.
    pub visibility: Visibility,
    /// The order; `None` is the catalogue's.
    pub sort: Option<ModelSort>,
    /// The page; `None` is the whole list.
    pub page: Option<Page>,
}

/// A page of the rows that match a filter.
#[derive(Debug, Clone)]
pub struct ModelList {
    /// The snapshot of the rows.
    pub snapshot: Arc<CatalogueSnapshot>,
    /// The output modalities, if they and the visibility alone select the rows, in the catalogue's order. `None` for
    /// other lists.
    pub outputs: Option<ModalityFilter>,
    /// The models that it shows.
    pub visibility: Visibility,
    /// Indices in [`CatalogueSnapshot::rows`], in the order of the list.
    pub rows: Vec<usize>,
    /// The number of rows that match the filter: always the count with the same filter.
    pub total: usize,
    /// The offset and limit of the next page; `None` on the last page.
    pub next: Option<(usize, usize)>,
}

impl ModelList {
    /// Returns true if the page has all rows that match the filter.
    pub fn is_whole(&self) -> bool {
        self.rows.len() == self.total
    }
}

/// Lists models.
pub struct ListModels {
    catalogue: Arc<dyn Catalogue>,
    callable: Arc<dyn CallableModels>,
}

impl ListModels {
    /// Wires the catalogue and the models with an endpoint.
    pub fn new(catalogue: Arc<dyn Catalogue>, callable: Arc<dyn CallableModels>) -> Self {
        Self { catalogue, callable }
    }

    /// Lists models.
    pub fn execute(&self, request: &ModelListRequest) -> ModelList {
        self.list(request, request.filter.only_outputs().filter(|_| request.sort.is_none()), |_, _| true)
    }

    /// Lists the models that `keep` accepts too. It receives the concrete row of an alias.
    pub fn execute_where(
        &self,
        request: &ModelListRequest,
        keep: impl Fn(&CatalogueSnapshot, &Model) -> bool,
    ) -> ModelList {
        let keep = |snapshot: &CatalogueSnapshot, row: &Arc<Model>| {
            snapshot.concrete(row).is_some_and(|model| keep(snapshot, &model))
        };
        self.list(request, None, keep)
    }

    fn list(
        &self,
        request: &ModelListRequest,
        outputs: Option<ModalityFilter>,
        keep: impl Fn(&CatalogueSnapshot, &Arc<Model>) -> bool,
    ) -> ModelList {
        let snapshot = self.catalogue.snapshot();
        let visibility = request.visibility;
        let is_shown = |&index: &usize| {
            let row = &snapshot.rows()[index];
            self.is_visible(&snapshot, row, visibility) && keep(&snapshot, row)
        };
        let mut rows: Vec<usize> = request.filter.select(&snapshot, &*self.callable).filter(is_shown).collect();
        if let Some(sort) = request.sort {
            sort.sort(&snapshot, &mut rows);
        }
        let total = rows.len();
        let mut next = None;
        if let Some(page) = request.page {
            let Range { start, end } = page.of_length(total);
            next = (end < total).then_some((end, page.limit));
            rows.truncate(end);
            rows.drain(..start);
        }
        ModelList { snapshot, outputs, visibility, rows, total, next }
    }

    /// Returns the rows of a snapshot that serve Decisions requests under their own names. An alias without a target has
    /// none.
    pub fn decision_models<'s>(
        &'s self,
        snapshot: &'s CatalogueSnapshot,
        visibility: Visibility,
    ) -> impl Iterator<Item = &'s Arc<Model>> {
        let usable = move |row: &&Arc<Model>| {
            row.serves_decisions()
                && snapshot.resolve(row.id.as_str()).is_some()
                && self.is_visible(snapshot, row, visibility)
        };
        snapshot.rows().iter().filter(usable)
    }

    /// An alias is as callable as the model it leads to.
    fn is_visible(&self, snapshot: &CatalogueSnapshot, row: &Arc<Model>, visibility: Visibility) -> bool {
        visibility == Visibility::All || snapshot.concrete(row).is_some_and(|model| self.callable.is_callable(&model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AliasTarget, DefaultModality, FilterParameter, Model, Pricing};
    use crate::money::Price;
    use crate::routing::{Endpoint, EndpointDirectory, Wire};
    use crate::testing::MemoryCatalogue;
    use rstest::rstest;

    fn catalogue() -> Arc<MemoryCatalogue> {
        let row = |number: usize| {
            let id = format!("acme/m-{number}").parse().unwrap();
            let mut row = Model::minimal(id, Pricing::per_token(Price::ZERO, Price::ZERO));
            let outputs: &[&str] = match number % 3 {
                0 => &["text"],
                1 => &["decisions", "text"],
                _ => &["image"],
            };
            row.architecture.output_modalities = outputs.iter().map(|&name| name.to_owned()).collect();
            row
        };
        Arc::new(MemoryCatalogue::new((0..9).map(row).collect()))
    }

    fn listing() -> ListModels {
        let endpoint = |model: &str| Endpoint::new(model.parse().unwrap(), "p".parse().unwrap(), Wire::SystemOne, "m");
        let endpoints = ["acme/m-0", "acme/m-4", "acme/m-7", "acme/other"].map(endpoint);
        ListModels::new(catalogue(), Arc::new(EndpointDirectory::new(endpoints.to_vec())))
    }

    fn request(
        outputs: Option<&str>,
        default: DefaultModality,
        visibility: Visibility,
        page: Option<Page>,
    ) -> ModelListRequest {
        let mut filter = ModelFilter::of(default);
        if let Some(outputs) = outputs {
            filter.set(FilterParameter::OutputModalities, outputs).unwrap();
        }
        ModelListRequest { filter, visibility, sort: None, page }
    }

    fn list(filter: Option<&str>, default: DefaultModality, page: Option<Page>) -> ModelList {
        listing().execute(&request(filter, default, Visibility::All, page))
    }

    #[test]
    fn list_of_callable_models_has_those_with_an_endpoint_and_their_aliases() {
        let alias = |id: &str, slug: &str| {
            let target = AliasTarget { name: slug.to_owned(), slug: slug.parse().unwrap() };
            let row = Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
            Model { alias_target: Some(target), ..row }
        };
        let mut rows: Vec<Model> = catalogue().snapshot().rows().iter().map(|row| (**row).clone()).collect();
        rows.extend([
            alias("~acme/called", "acme/m-7"),
            alias("~acme/idle", "acme/m-1"),
            alias("~acme/lost", "acme/x"),
        ]);
        let listing = ListModels { catalogue: Arc::new(MemoryCatalogue::new(rows)), ..listing() };
        let ids = |list: &ModelList| -> Vec<String> {
            list.rows.iter().map(|&index| list.snapshot.rows()[index].id.to_string()).collect()
        };
        let callable = |filter: Option<&str>, page: Option<Page>| {
            listing.execute(&request(filter, DefaultModality::Decisions, Visibility::Callable, page))
        };
        // m-0 has an endpoint and answers no decisions.
        assert_eq!(ids(&callable(None, None)), ["acme/m-4", "acme/m-7", "~acme/called"]);
        assert_eq!(ids(&callable(Some("all"), None)), ["acme/m-4", "acme/m-7", "~acme/called"]);
        assert!(ids(&callable(Some("image"), None)).is_empty());
        let second = callable(None, page(Some(1), Some(1)));
        assert_eq!((ids(&second), second.total, second.next), (vec!["acme/m-7".to_owned()], 3, Some((2, 1))));
        let usable = |visibility| -> Vec<&str> {
            listing.decision_models(&second.snapshot, visibility).map(|row| row.id.as_str()).collect()
        };
        assert_eq!(usable(Visibility::Callable), ["acme/m-4", "acme/m-7", "~acme/called"]);
        let all = ["acme/m-1", "acme/m-4", "acme/m-7", "~acme/called", "~acme/idle"];
        assert_eq!(usable(Visibility::All), all);
    }

    fn page(offset: Option<usize>, limit: Option<usize>) -> Option<Page> {
        Page::of(offset, limit).unwrap()
    }

    #[rstest]
    #[case(None, DefaultModality::Text, &[0, 1, 3, 4, 6, 7])]
    #[case(None, DefaultModality::Decisions, &[1, 4, 7])]
    #[case(Some("decisions,Image"), DefaultModality::Text, &[1, 2, 4, 5, 7, 8])]
    #[case(Some("all"), DefaultModality::Decisions, &[0, 1, 2, 3, 4, 5, 6, 7, 8])]
    #[case(Some("rerank"), DefaultModality::Decisions, &[])]
    fn list_contains_rows_that_match_the_filter(
        #[case] filter: Option<&str>,
        #[case] default: DefaultModality,
        #[case] expected: &[usize],
    ) {
        let list = list(filter, default, None);
        assert_eq!(list.rows, expected);
        assert_eq!((list.total, list.next, list.is_whole()), (expected.len(), None, true));
    }

    #[rstest]
    #[case(Some(0), Some(2), &[0, 1], Some((2, 2)))]
    #[case(Some(2), Some(2), &[3, 4], Some((4, 2)))]
    #[case(Some(4), Some(2), &[6, 7], None)]
    #[case(Some(5), None, &[7], None)]
    #[case(None, Some(5), &[0, 1, 3, 4, 6], Some((5, 5)))]
    #[case(Some(6), Some(1), &[], None)]
    #[case(Some(usize::MAX), Some(1000), &[], None)]
    fn page_is_a_range_of_the_list(
        #[case] offset: Option<usize>,
        #[case] limit: Option<usize>,
        #[case] expected: &[usize],
        #[case] next: Option<(usize, usize)>,
    ) {
        let list = list(None, DefaultModality::Text, page(offset, limit));
        assert_eq!((list.rows.as_slice(), list.total, list.next), (expected, 6, next));
        assert_eq!(list.is_whole(), expected.len() == 6);
    }

    #[test]
    fn page_has_a_default_limit_and_bounds() {
        assert_eq!(page(None, None), None);
        assert_eq!(page(Some(7), None), page(Some(7), Some(500)));
        assert_eq!(page(Some(0), Some(1000)), page(None, Some(1000)));
        for limit in [0, 1001, usize::MAX] {
            assert!(matches!(Page::of(None, Some(limit)), Err(InvalidPageLimit)), "{limit}");
        }
    }

    #[test]
    fn list_names_its_outputs_only_if_nothing_else_selects_or_orders_it() {
        let plain = request(Some("text"), DefaultModality::Text, Visibility::All, None);
        assert_eq!(listing().execute(&plain).outputs, Some(ModalityFilter::default()));
        let mut further = plain.clone();
        further.filter.set(FilterParameter::Context, "0").unwrap();
        assert_eq!(listing().execute(&further).outputs, None);
        let sorted = ModelListRequest { sort: Some(ModelSort::Newest), ..plain.clone() };
        assert_eq!(listing().execute(&sorted).outputs, None);
        assert_eq!(listing().execute_where(&plain, |_, _| true).outputs, None);
    }
}
