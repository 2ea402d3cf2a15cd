//! The catalogue's rows as the bytes that are sent, made once per snapshot and row.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use domain::model::{CatalogueSnapshot, Model};

use crate::http::etag::Tagged;

/// Renders each row of the snapshot in force at most once. Reads take no lock.
pub(crate) struct RenderedCatalogue {
    /// What stands before a row's slug in `links.details`.
    models_path: String,
    current: ArcSwap<Rendered>,
}

struct Rendered {
    snapshot: Arc<CatalogueSnapshot>,
    rows: Vec<OnceLock<Tagged>>,
}

impl Rendered {
    fn new(snapshot: Arc<CatalogueSnapshot>) -> Self {
        let rows = snapshot.rows().iter().map(|_| OnceLock::new()).collect();
        Self { snapshot, rows }
    }
}

impl RenderedCatalogue {
    pub(crate) fn new(models_path: String) -> Self {
        Self { models_path, current: ArcSwap::from_pointee(Rendered::new(Arc::default())) }
    }

    /// The row at `index` of `snapshot`; `None` where there is no such row.
    pub(crate) fn row(&self, snapshot: &Arc<CatalogueSnapshot>, index: usize) -> Option<Tagged> {
        let model = snapshot.rows().get(index)?;
        let current = self.current.load();
        if Arc::ptr_eq(&current.snapshot, snapshot) {
            return current.rows.get(index).map(|row| row.get_or_init(|| self.render(model)).clone());
        }
        // Another snapshot is in force. Requests that still hold the old one may swap it back; that costs a
        // rendering and is never wrong, since each looks only at rows of its own snapshot.
        let fresh = Arc::new(Rendered::new(Arc::clone(snapshot)));
        let row = fresh.rows.get(index).map(|row| row.get_or_init(|| self.render(model)).clone());
        self.current.store(fresh);
        row
    }

    fn render(&self, model: &Model) -> Tagged {
        let details = format!("{}/{}/endpoints", self.models_path, model.canonical_slug);
        Tagged::new(format!("{{\"data\":{}}}", catalogue_json::write_row(model, &details)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use domain::model::Pricing;
    use domain::money::Price;
    use serde_json::Value;

    fn snapshot(name: &str) -> Arc<CatalogueSnapshot> {
        let mut row = Model::minimal("acme/judge:free".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        row.canonical_slug = "acme/judge-20260901".parse().unwrap();
        row.name = name.to_owned();
        Arc::new(CatalogueSnapshot::build(vec![row]))
    }

    async fn shown(rendered: &RenderedCatalogue, snapshot: &Arc<CatalogueSnapshot>) -> Value {
        let response = rendered.row(snapshot, 0).unwrap().respond(&TestRequest::get().to_http_request());
        serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap()
    }

    #[actix_web::test]
    async fn a_row_is_shown_with_its_link_below_the_base_path() {
        let rendered = RenderedCatalogue::new("/base/models".to_owned());
        let json = shown(&rendered, &snapshot("Judge")).await;
        assert_eq!(json["data"]["id"], "acme/judge:free");
        assert_eq!(json["data"]["links"]["details"], "/base/models/acme/judge-20260901/endpoints");
    }

    #[actix_web::test]
    async fn each_snapshot_shows_its_own_rows_whatever_came_before() {
        let rendered = RenderedCatalogue::new(String::new());
        let (old, new) = (snapshot("Old"), snapshot("New"));
        for (snapshot, name) in [(&old, "Old"), (&new, "New"), (&old, "Old"), (&old, "Old"), (&new, "New")] {
            assert_eq!(shown(&rendered, snapshot).await["data"]["name"], name);
        }
        assert!(rendered.row(&old, 1).is_none());
    }
}
