//! The catalogue's rows, by output modality and in pages.

use std::ops::Range;
use std::sync::Arc;

use super::{Catalogue, CatalogueSnapshot, ListModelsError, Modality, ModalityFilter, ModalitySet};

/// The filter of a list without an output modality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultModality {
    /// Models with text output, as for the count.
    Text,
    /// Models that answer Decisions requests.
    Decisions,
}

impl DefaultModality {
    fn filter(self) -> ModalityFilter {
        let modality = match self {
            Self::Text => Modality::Text,
            Self::Decisions => Modality::Decisions,
        };
        ModalityFilter::AnyOf(ModalitySet::default().with(modality))
    }
}

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
    pub fn of(offset: Option<usize>, limit: Option<usize>) -> Result<Option<Self>, ListModelsError> {
        if limit.is_some_and(|limit| !(1..=Self::MAX_LIMIT).contains(&limit)) {
            return Err(ListModelsError::Limit);
        }
        let page = Self { offset: offset.unwrap_or(0), limit: limit.unwrap_or(Self::LIMIT) };
        Ok((offset.is_some() || limit.is_some()).then_some(page))
    }

    fn of_length(self, length: usize) -> Range<usize> {
        self.offset.min(length)..self.offset.saturating_add(self.limit).min(length)
    }
}

/// A page of the rows that match a filter.
#[derive(Debug, Clone)]
pub struct ModelList {
    /// The snapshot of the rows.
    pub snapshot: Arc<CatalogueSnapshot>,
    /// The filter.
    pub filter: ModalityFilter,
    /// Indices in [`CatalogueSnapshot::rows`], in the catalogue's order.
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
}

impl ListModels {
    /// Wires the port.
    pub fn new(catalogue: Arc<dyn Catalogue>) -> Self {
        Self { catalogue }
    }

    /// Lists models. `output_modalities` is the filter as the caller wrote it, parsed as by [`super::CountModels`].
    /// Without a `page` the list is complete.
    pub fn execute(
        &self,
        output_modalities: Option<&str>,
        default: DefaultModality,
        page: Option<Page>,
    ) -> Result<ModelList, ListModelsError> {
        let filter = output_modalities.map_or(Ok(default.filter()), str::parse)?;
        let snapshot = self.catalogue.snapshot();
        let mut rows: Vec<usize> = snapshot.select(filter).collect();
        let total = rows.len();
        let mut next = None;
        if let Some(page) = page {
            let Range { start, end } = page.of_length(total);
            next = (end < total).then_some((end, page.limit));
            rows.truncate(end);
            rows.drain(..start);
        }
        Ok(ModelList { snapshot, filter, rows, total, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CountModels, Model, Pricing};
    use crate::money::Price;
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

    fn list(filter: Option<&str>, default: DefaultModality, page: Option<Page>) -> ModelList {
        ListModels::new(catalogue()).execute(filter, default, page).unwrap()
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
        if filter.is_some() || default == DefaultModality::Text {
            assert_eq!(CountModels::new(catalogue()).execute(filter).unwrap(), list.total);
        }
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
            assert!(matches!(Page::of(None, Some(limit)), Err(ListModelsError::Limit)), "{limit}");
        }
    }

    #[test]
    fn list_rejects_unknown_modality() {
        let list = ListModels::new(catalogue());
        let error = list.execute(Some("file"), DefaultModality::Text, None).unwrap_err();
        assert!(error.to_string().contains("Valid values are: text"), "{error}");
    }
}
