//! The serialised rows and lists of the catalogue, rendered once per snapshot.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use chrono::DateTime;
use domain::json::Json;
use domain::model::{CatalogueSnapshot, Modality, ModalityFilter, Model, ModelList};

use crate::http::etag::TaggedBody;

/// Renders each row and each common list of the current snapshot at most once. Reads take no lock.
pub(crate) struct RenderedCatalogue {
    /// The prefix of a row's slug in `links.details`.
    models_path: String,
    current: ArcSwap<Rendered>,
}

struct Rendered {
    snapshot: Arc<CatalogueSnapshot>,
    rows: Vec<OnceLock<TaggedBody>>,
    /// The rows as list elements.
    listed: Vec<OnceLock<String>>,
    /// The list of decision models in System One's format.
    decision_models: OnceLock<String>,
    /// Whole lists: one for each modality in declaration order, then the list of all models. Unions of modalities are
    /// rendered per request, because there are too many to cache.
    whole: [OnceLock<TaggedBody>; Modality::ALL.len() + 1],
}

impl Rendered {
    fn new(snapshot: Arc<CatalogueSnapshot>) -> Self {
        let rows = snapshot.rows().iter().map(|_| OnceLock::new()).collect();
        let listed = snapshot.rows().iter().map(|_| OnceLock::new()).collect();
        Self { snapshot, rows, listed, decision_models: OnceLock::new(), whole: Default::default() }
    }

    fn whole(&self, filter: ModalityFilter) -> Option<&OnceLock<TaggedBody>> {
        let index = match filter {
            ModalityFilter::All => Modality::ALL.len(),
            ModalityFilter::AnyOf(set) => set.only()? as usize,
        };
        self.whole.get(index)
    }
}

impl RenderedCatalogue {
    pub(crate) fn new(models_path: String) -> Self {
        Self { models_path, current: ArcSwap::from_pointee(Rendered::new(Arc::default())) }
    }

    /// Returns the row at `index` of `snapshot`; `None` if it does not exist.
    pub(crate) fn row(&self, snapshot: &Arc<CatalogueSnapshot>, index: usize) -> Option<TaggedBody> {
        let model = snapshot.rows().get(index)?;
        let current = self.current.load();
        if Arc::ptr_eq(&current.snapshot, snapshot) {
            return current.rows.get(index).map(|row| row.get_or_init(|| self.render(model)).clone());
        }
        // The snapshot has changed. Requests with the old snapshot may swap it back. That costs a rendering and stays
        // correct, because each request reads only rows of its own snapshot.
        let fresh = Arc::new(Rendered::new(Arc::clone(snapshot)));
        let row = fresh.rows.get(index).map(|row| row.get_or_init(|| self.render(model)).clone());
        self.current.store(fresh);
        row
    }

    /// Returns a list; `next` is the path of its next page.
    pub(crate) fn list(&self, list: &ModelList, next: Option<&str>) -> TaggedBody {
        let mut current = self.current.load_full();
        if !Arc::ptr_eq(&current.snapshot, &list.snapshot) {
            current = Arc::new(Rendered::new(Arc::clone(&list.snapshot)));
            self.current.store(Arc::clone(&current));
        }
        match current.whole(list.filter).filter(|_| list.is_whole()) {
            Some(whole) => whole.get_or_init(|| self.render_list(&current, list, None)).clone(),
            None => self.render_list(&current, list, next),
        }
    }

    fn render(&self, model: &Model) -> TaggedBody {
        TaggedBody::new(format!("{{\"data\":{}}}", catalogue_json::write_row(model, &self.details(model))))
    }

    /// Renders a list for three kinds of clients: `data` with `links` and `total_count`, `data` with `object`, and
    /// `models`. `models` always holds all decision models, so filter and page do not apply to it.
    fn render_list(&self, current: &Rendered, list: &ModelList, next: Option<&str>) -> TaggedBody {
        let rows = list.snapshot.rows();
        let listed = list.rows.iter().filter_map(|&index| {
            let (cell, row) = current.listed.get(index).zip(rows.get(index))?;
            Some(cell.get_or_init(|| catalogue_json::write_listed(row, &self.details(row))).as_str())
        });
        let data = Json::array(listed);
        let models = current.decision_models.get_or_init(|| decision_models(&list.snapshot));
        let next = next.map_or_else(|| "null".to_owned(), |next| Json::string(next).text().to_owned());
        TaggedBody::new(format!(
            "{{\"object\":\"list\",\"data\":{},\"models\":{models},\"total_count\":{},\"links\":{{\"next\":{next}}}}}",
            data.text(),
            list.total
        ))
    }

    fn details(&self, model: &Model) -> String {
        format!("{}/{}/endpoints", self.models_path, model.canonical_slug)
    }
}

/// Renders every row that serves Decisions requests, by a callable name. An alias without a target has none.
fn decision_models(snapshot: &CatalogueSnapshot) -> String {
    let usable = |row: &&Arc<Model>| row.serves_decisions() && snapshot.resolve(row.id.as_str()).is_some();
    let entry = |row: &Arc<Model>| {
        let released = DateTime::from_timestamp(row.created, 0).unwrap_or_default().format("%Y-%m-%d");
        let [name, description, release_date] =
            [row.id.as_str(), &row.description, &released.to_string()].map(Json::string);
        Json::object([
            ("name", name.text()),
            ("description", description.text()),
            ("release_date", release_date.text()),
        ])
    };
    let entries: Vec<Json> = snapshot.rows().iter().filter(usable).map(entry).collect();
    Json::array(entries.iter().map(Json::text)).text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use domain::model::{AliasTarget, DefaultModality, ListModels, Page, Pricing};
    use domain::money::Price;
    use domain::testing::MemoryCatalogue;
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
    async fn row_links_below_base_path() {
        let rendered = RenderedCatalogue::new("/base/models".to_owned());
        let json = shown(&rendered, &snapshot("Judge")).await;
        assert_eq!(json["data"]["id"], "acme/judge:free");
        assert_eq!(json["data"]["links"]["details"], "/base/models/acme/judge-20260901/endpoints");
    }

    #[actix_web::test]
    async fn row_belongs_to_requested_snapshot() {
        let rendered = RenderedCatalogue::new(String::new());
        let (old, new) = (snapshot("Old"), snapshot("New"));
        for (snapshot, name) in [(&old, "Old"), (&new, "New"), (&old, "Old"), (&old, "Old"), (&new, "New")] {
            assert_eq!(shown(&rendered, snapshot).await["data"]["name"], name);
        }
        assert!(rendered.row(&old, 1).is_none());
    }

    fn catalogue() -> Arc<MemoryCatalogue> {
        let row = |id: &str, outputs: &[&str]| {
            let mut row = Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
            row.architecture.output_modalities = outputs.iter().map(|&name| name.to_owned()).collect();
            row
        };
        let alias = |id: &str, slug: &str| {
            let target = AliasTarget { name: slug.to_owned(), slug: slug.parse().unwrap() };
            Model { alias_target: Some(target), ..row(id, &["decisions"]) }
        };
        let released = Model {
            created: 1_789_603_200,
            description: "\"Decides\"".to_owned(),
            ..row("acme/judge", &["decisions"])
        };
        Arc::new(MemoryCatalogue::new(vec![
            row("acme/writer", &["text"]),
            released,
            alias("~acme/judge-latest", "acme/judge"),
            alias("~acme/lost", "acme/nowhere"),
            row("acme/painter", &["text", "image"]),
        ]))
    }

    fn selected(catalogue: &Arc<MemoryCatalogue>, filter: &str, page: Option<Page>) -> ModelList {
        let catalogue = Arc::clone(catalogue);
        ListModels::new(catalogue).execute(Some(filter), DefaultModality::Text, page).unwrap()
    }

    async fn body(tagged: TaggedBody) -> Value {
        let response = tagged.respond(&TestRequest::get().to_http_request());
        serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap()
    }

    fn ids(list: &Value) -> Vec<&str> {
        list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
    }

    #[actix_web::test]
    async fn list_contains_rows_and_decision_models() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new("/base/models".to_owned()));
        let list = body(rendered.list(&selected(&catalogue, "text", None), None)).await;
        assert_eq!(ids(&list), ["acme/writer", "acme/painter"]);
        assert_eq!((&list["object"], &list["total_count"]), (&"list".into(), &2.into()));
        assert_eq!(list["links"], serde_json::json!({"next": null}));
        let snapshot = selected(&catalogue, "all", None).snapshot;
        let mut row = shown(&rendered, &snapshot).await["data"].clone();
        row["object"] = "model".into();
        row["owned_by"] = "acme".into();
        assert_eq!(list["data"][0], row);
        let models = serde_json::json!([
            {"name": "acme/judge", "description": "\"Decides\"", "release_date": "2026-09-17"},
            {"name": "~acme/judge-latest", "description": "", "release_date": "1970-01-01"},
        ]);
        assert_eq!(list["models"], models);
    }

    #[actix_web::test]
    async fn cached_lists_do_not_mix_filters() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new(String::new()));
        let page = |offset, limit| Page::of(Some(offset), Some(limit)).unwrap();
        for _ in 0..2 {
            for (filter, page, next, expected) in [
                ("text", None, None, vec!["acme/writer", "acme/painter"]),
                ("text", page(0, 2), None, vec!["acme/writer", "acme/painter"]),
                ("text", page(0, 1), Some("/next"), vec!["acme/writer"]),
                ("text", page(1, 1), None, vec!["acme/painter"]),
                ("image", None, None, vec!["acme/painter"]),
                ("image,rerank", None, None, vec!["acme/painter"]),
                ("decisions", None, None, vec!["acme/judge", "~acme/judge-latest", "~acme/lost"]),
                ("rerank", None, None, vec![]),
                ("all", page(3, 2), None, vec!["~acme/lost", "acme/painter"]),
            ] {
                let list = body(rendered.list(&selected(&catalogue, filter, page), next)).await;
                assert_eq!(ids(&list), expected, "{filter} {page:?}");
                assert_eq!(list["links"]["next"].as_str(), next, "{filter} {page:?}");
                let total = selected(&catalogue, filter, None).rows.len();
                assert_eq!(list["total_count"], total, "{filter} {page:?}");
            }
        }
        let other = MemoryCatalogue::new(Vec::new());
        let list = body(rendered.list(&selected(&Arc::new(other), "text", None), None)).await;
        assert_eq!((ids(&list).len(), list["models"].as_array().unwrap().len()), (0, 0));
    }
}
