//! The serialised rows and lists of the catalogue, rendered once per snapshot.

pub(crate) mod schema;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use chrono::DateTime;
use domain::guardrail::PermittedModels;
use domain::json::Json;
use domain::model::{CatalogueSnapshot, ListModels, Modality, ModalityFilter, Model, ModelList, Visibility};

use self::schema::DecisionModel;
use crate::http::response::TaggedBody;

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
    lists: ArcSwap<RenderedLists>,
}

/// The rendered lists of one use case. Another one has other endpoints.
#[derive(Default)]
struct RenderedLists {
    list_models: Option<Arc<ListModels>>,
    /// The lists of decision models in System One's format, by visibility.
    decision_models: [OnceLock<String>; VISIBILITIES],
    /// Whole lists by their visibility and that of the decision models beside them.
    whole: [[WholeLists; VISIBILITIES]; VISIBILITIES],
}

/// One list for each modality in declaration order, then the list of all modalities. Unions of modalities are rendered
/// per request, because there are too many to cache.
type WholeLists = [OnceLock<TaggedBody>; Modality::ALL.len() + 1];

const VISIBILITIES: usize = 2;

impl Rendered {
    fn new(snapshot: Arc<CatalogueSnapshot>) -> Self {
        let rows = snapshot.rows().iter().map(|_| OnceLock::new()).collect();
        let listed = snapshot.rows().iter().map(|_| OnceLock::new()).collect();
        Self { snapshot, rows, listed, lists: ArcSwap::default() }
    }

    /// Returns the lists of a use case. Requests with a replaced one may swap its lists back, which costs a rendering.
    fn lists(&self, list_models: &Arc<ListModels>) -> Arc<RenderedLists> {
        let lists = self.lists.load_full();
        if lists.list_models.as_ref().is_some_and(|known| Arc::ptr_eq(known, list_models)) {
            return lists;
        }
        let fresh = RenderedLists { list_models: Some(Arc::clone(list_models)), ..RenderedLists::default() };
        let fresh = Arc::new(fresh);
        self.lists.store(Arc::clone(&fresh));
        fresh
    }
}

impl RenderedLists {
    fn whole(&self, list: &ModelList, models: Visibility) -> Option<&OnceLock<TaggedBody>> {
        let index = match list.outputs? {
            ModalityFilter::All => Modality::ALL.len(),
            ModalityFilter::AnyOf(set) => set.only()? as usize,
        };
        self.whole.get(list.visibility as usize)?.get(models as usize)?.get(index).filter(|_| list.is_whole())
    }
}

impl RenderedCatalogue {
    pub(crate) fn new(models_path: String) -> Self {
        Self { models_path, current: ArcSwap::from_pointee(Rendered::new(Arc::default())) }
    }

    /// Returns the row at `index` of `snapshot`; `None` if it does not exist.
    pub(crate) fn row(&self, snapshot: &Arc<CatalogueSnapshot>, index: usize) -> Option<TaggedBody> {
        let model = snapshot.rows().get(index)?;
        self.of(snapshot).rows.get(index).map(|row| row.get_or_init(|| self.render(model)).clone())
    }

    /// Returns the row at `index` of `snapshot` as an element of a list; `None` if it does not exist.
    pub(crate) fn entry(&self, snapshot: &Arc<CatalogueSnapshot>, index: usize) -> Option<TaggedBody> {
        let model = snapshot.rows().get(index)?;
        self.of(snapshot).listed.get(index).map(|row| TaggedBody::new(row.get_or_init(|| self.listed(model)).clone()))
    }

    /// Returns a list of `list_models`; `models` is the visibility of the decision models beside it, `next` the path of
    /// its next page.
    pub(crate) fn list(
        &self,
        list: &ModelList,
        list_models: &Arc<ListModels>,
        models: Visibility,
        next: Option<&str>,
    ) -> TaggedBody {
        let current = self.of(&list.snapshot);
        let lists = current.lists(list_models);
        let render = |next| {
            let rendered = lists.decision_models[models as usize]
                .get_or_init(|| decision_models(list_models.decision_models(&list.snapshot, models)));
            self.render_list(&current, list, rendered, next)
        };
        match lists.whole(list, models) {
            Some(whole) => whole.get_or_init(|| render(None)).clone(),
            None => render(next),
        }
    }

    /// Returns the permitted models of a key; `next` is the path of the next page.
    pub(crate) fn permitted(&self, permitted: &PermittedModels, next: Option<&str>) -> TaggedBody {
        let current = self.of(&permitted.list.snapshot);
        self.render_list(&current, &permitted.list, &decision_models(permitted.decision_models.iter()), next)
    }

    /// Returns the renderings of a snapshot. Requests with an old snapshot may swap it back. That costs a rendering and
    /// stays correct, because each request reads only rows of its own snapshot.
    fn of(&self, snapshot: &Arc<CatalogueSnapshot>) -> Arc<Rendered> {
        let current = self.current.load_full();
        if Arc::ptr_eq(&current.snapshot, snapshot) {
            return current;
        }
        let fresh = Arc::new(Rendered::new(Arc::clone(snapshot)));
        self.current.store(Arc::clone(&fresh));
        fresh
    }

    fn render(&self, model: &Model) -> TaggedBody {
        TaggedBody::new(format!("{{\"data\":{}}}", wires::catalogue::write_row(model, &self.details(model))))
    }

    fn listed(&self, model: &Model) -> String {
        wires::catalogue::write_listed(model, &self.details(model))
    }

    /// Renders a list for three kinds of clients: `data` with `links` and `total_count`, `data` with `object`, and
    /// `models`. Filter and page do not apply to `models`.
    fn render_list(&self, current: &Rendered, list: &ModelList, models: &str, next: Option<&str>) -> TaggedBody {
        let rows = list.snapshot.rows();
        let listed = list.rows.iter().filter_map(|&index| {
            let (cell, row) = current.listed.get(index).zip(rows.get(index))?;
            Some(cell.get_or_init(|| self.listed(row)).as_str())
        });
        let data = Json::array(listed);
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

/// Renders rows in System One's format.
fn decision_models<'m>(rows: impl Iterator<Item = &'m Arc<Model>>) -> String {
    let entries: Vec<DecisionModel<'_>> = rows.map(|row| DecisionModel::new(row)).collect();
    // Serialisation of strings cannot fail.
    serde_json::to_string(&entries).unwrap_or_default()
}

impl<'m> DecisionModel<'m> {
    fn new(row: &'m Model) -> Self {
        let released = DateTime::from_timestamp(row.created, 0).unwrap_or_default();
        Self {
            name: row.id.as_str(),
            description: &row.description,
            release_date: released.format("%Y-%m-%d").to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use domain::model::{AliasTarget, ModelListRequest, ModelSort, Page, Pricing};
    use domain::money::Price;
    use domain::routing::{Endpoint, EndpointDirectory};
    use domain::testing::MemoryCatalogue;
    use serde_json::Value;

    use super::*;
    use crate::app::assert_valid;

    fn snapshot(name: &str) -> Arc<CatalogueSnapshot> {
        let mut row = Model::minimal("acme/judge:free".parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO));
        row.canonical_slug = "acme/judge-20260901".parse().unwrap();
        row.name = name.to_owned();
        Arc::new(CatalogueSnapshot::build(vec![row]))
    }

    async fn shown(rendered: &RenderedCatalogue, snapshot: &Arc<CatalogueSnapshot>) -> Value {
        body(rendered.row(snapshot, 0).unwrap()).await
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
            row("acme/idle", &["decisions"]),
            row("acme/painter", &["text", "image"]),
        ]))
    }

    fn listing(catalogue: &Arc<MemoryCatalogue>) -> Arc<ListModels> {
        let endpoint =
            Endpoint::new("acme/judge".parse().unwrap(), "p".parse().unwrap(), domain::routing::Wire::SystemOne, "m");
        Arc::new(ListModels::new(Arc::clone(catalogue) as _, Arc::new(EndpointDirectory::new(vec![endpoint]))))
    }

    fn request(outputs: &str, visibility: Visibility, page: Option<Page>) -> ModelListRequest {
        let filter = outputs.parse::<ModalityFilter>().unwrap().into();
        ModelListRequest { filter, visibility, sort: None, page }
    }

    fn selected(catalogue: &Arc<MemoryCatalogue>, filter: &str, page: Option<Page>) -> ModelList {
        listing(catalogue).execute(&request(filter, Visibility::All, page))
    }

    #[actix_web::test]
    async fn cached_lists_do_not_mix_visibilities() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new(String::new()));
        let listing = listing(&catalogue);
        for _ in 0..2 {
            for (visibility, expected) in [
                (Visibility::Callable, vec!["acme/judge", "~acme/judge-latest"]),
                (Visibility::All, vec!["acme/judge", "~acme/judge-latest", "~acme/lost", "acme/idle"]),
            ] {
                let list = listing.execute(&request("decisions", visibility, None));
                for models in [Visibility::Callable, Visibility::All] {
                    let list = body(rendered.list(&list, &listing, models, None)).await;
                    assert_eq!(ids(&list), expected);
                    let count = if models == Visibility::All { 3 } else { 2 };
                    assert_eq!(
                        list["models"].as_array().unwrap().len(),
                        count,
                        "an alias without a target has no name"
                    );
                }
            }
        }
    }

    #[actix_web::test]
    async fn cached_lists_do_not_mix_endpoints() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new(String::new()));
        let none = Arc::new(ListModels::new(Arc::clone(&catalogue) as _, Arc::new(EndpointDirectory::default())));
        for (listing, count) in [(&listing(&catalogue), 2), (&none, 0), (&listing(&catalogue), 2)] {
            let list = listing.execute(&request("all", Visibility::Callable, None));
            let list = body(rendered.list(&list, listing, Visibility::Callable, None)).await;
            assert_eq!((ids(&list).len(), list["models"].as_array().unwrap().len()), (count, count));
        }
    }

    #[actix_web::test]
    async fn entry_is_an_element_of_the_list() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new(String::new()));
        let list = selected(&catalogue, "all", None);
        let entry = body(rendered.entry(&list.snapshot, 1).unwrap()).await;
        assert_eq!(entry, body(rendered.list(&list, &listing(&catalogue), Visibility::All, None)).await["data"][1]);
        assert_eq!((&entry["object"], &entry["owned_by"]), (&"model".into(), &"acme".into()));
        assert!(rendered.entry(&list.snapshot, 9).is_none());
    }

    #[actix_web::test]
    async fn rendered_bodies_match_their_schemas() {
        let (catalogue, rendered) = (catalogue(), RenderedCatalogue::new("/base/models".to_owned()));
        let text = r#"{"id":"acme/all","architecture":{"output_modalities":["decisions"],"modality":"text->decisions"},
            "pricing":{"prompt":"0.1","completion":"0","web_search":"0.01","overrides":[{"min":1}]},"context_length":7,
            "top_provider":{"context_length":7,"max_completion_tokens":8,"is_moderated":true},
            "reasoning":{"mandatory":true,"further":1},"knowledge_cutoff":"2026-01-01","supported_voices":["a"],
            "expiration_date":null,"benchmarks":{"a":1}}"#;
        let full = Arc::new(CatalogueSnapshot::build(vec![wires::catalogue::read_row(text).unwrap()]));
        assert_valid("ModelResponse", &shown(&rendered, &full).await);
        assert_valid("ListedModel", &body(rendered.entry(&full, 0).unwrap()).await);
        let whole = selected(&catalogue, "all", None);
        let first = selected(&catalogue, "all", Page::of(None, Some(2)).unwrap());
        for (list, next) in [(&whole, None), (&first, Some("/next"))] {
            let list = body(rendered.list(list, &listing(&catalogue), Visibility::All, next)).await;
            assert!(!ids(&list).is_empty() && !list["models"].as_array().unwrap().is_empty());
            assert_valid("ModelListResponse", &list);
        }
        for at in 0..whole.rows.len() {
            assert_valid("ModelResponse", &body(rendered.row(&whole.snapshot, at).unwrap()).await);
        }
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
        let list =
            body(rendered.list(&selected(&catalogue, "text", None), &listing(&catalogue), Visibility::All, None)).await;
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
            {"name": "acme/idle", "description": "", "release_date": "1970-01-01"},
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
                ("decisions", None, None, vec!["acme/judge", "~acme/judge-latest", "~acme/lost", "acme/idle"]),
                ("rerank", None, None, vec![]),
                ("all", page(3, 3), None, vec!["~acme/lost", "acme/idle", "acme/painter"]),
            ] {
                let list = body(rendered.list(
                    &selected(&catalogue, filter, page),
                    &listing(&catalogue),
                    Visibility::All,
                    next,
                ))
                .await;
                assert_eq!(ids(&list), expected, "{filter} {page:?}");
                assert_eq!(list["links"]["next"].as_str(), next, "{filter} {page:?}");
                let total = selected(&catalogue, filter, None).rows.len();
                assert_eq!(list["total_count"], total, "{filter} {page:?}");
            }
        }
        let sorted = ModelListRequest { sort: Some(ModelSort::Newest), ..request("all", Visibility::All, None) };
        let sorted = listing(&catalogue).execute(&sorted);
        let list = body(rendered.list(&sorted, &listing(&catalogue), Visibility::All, None)).await;
        assert_eq!(ids(&list)[..2], ["acme/judge", "acme/idle"], "a sorted list is not the cached one");
        let other = Arc::new(MemoryCatalogue::new(Vec::new()));
        let list = body(rendered.list(&selected(&other, "text", None), &listing(&other), Visibility::All, None)).await;
        assert_eq!((ids(&list).len(), list["models"].as_array().unwrap().len()), (0, 0));
    }
}
