//! Model lists of guardrails after imports of the catalogue.

use std::collections::HashSet;
use std::sync::Arc;

use super::{candidate, forbidding};
use crate::change::Change;
use crate::guardrail::fixtures::{by, endpoints, ports, read, row, store};
use crate::guardrail::{Guardrail, GuardrailRepository, KnownNames, ManageGuardrails};
use crate::ids::GuardrailId;
use crate::model::{AliasTarget, CatalogueSnapshot, ImportCatalogue, ImportMode, Model, ModelId, ModelRepository};
use crate::routing::EndpointDirectory;
use crate::testing::{MemoryCatalogue, MemoryStore};
use crate::version::IfMatch;

const IGNORED: Option<&str> = Some("ignored_models");
const ALLOWED: Option<&str> = Some("allowed_models");

/// A store with an imported catalogue, and guardrails that name its models.
struct Fixture {
    store: MemoryStore,
    served: HashSet<ModelId>,
}

impl Fixture {
    async fn new(rows: Vec<Model>) -> Self {
        let fixture = Self { store: store().await, served: HashSet::new() };
        fixture.import(rows, ImportMode::Merge).await;
        fixture
    }

    async fn import(&self, rows: Vec<Model>, mode: ImportMode) {
        let import = ImportCatalogue::new(self.store.models());
        let by = by();
        let change = Change::conditional(&by, Some(IfMatch::Any));
        import.serving(self.served.clone(), []).execute(&change, rows, mode).await.unwrap();
    }

    async fn rows(&self) -> Vec<Model> {
        self.store.models().list().await.unwrap()
    }

    async fn ports(&self) -> ManageGuardrails {
        let catalogue = Arc::new(MemoryCatalogue::new(self.rows().await));
        let names = KnownNames::new(catalogue, Arc::new(EndpointDirectory::new(endpoints())));
        ManageGuardrails { names, ..ports(&self.store) }
    }

    async fn guardrail(&self, rules: &str) -> GuardrailId {
        let record = read(&format!(r#"{{"name":"g",{rules}}}"#)).unwrap();
        self.ports().await.create(&Change::plain(&by()), &record).await.unwrap().guardrail.id
    }

    async fn change(&self, id: GuardrailId, change: &str) {
        let use_case = self.ports().await;
        use_case.update(&Change::plain(&by()), &id.to_string(), &read(change).unwrap()).await.unwrap();
    }

    async fn stored(&self, id: GuardrailId) -> Guardrail {
        self.store.guardrails().find(id).await.unwrap().unwrap()
    }

    /// Returns the rule by which the guardrail forbids a model.
    async fn rule(&self, id: GuardrailId, model: &str) -> Option<&'static str> {
        let catalogue = CatalogueSnapshot::build(self.rows().await);
        forbidding(&self.stored(id).await, &candidate(model, "mirror"), &catalogue)
    }
}

fn named(mut row: Model, former: &str) -> Model {
    row.renamed_from.push(former.parse().unwrap());
    row
}

#[tokio::test]
async fn ban_survives_slug_change_by_import_and_permission_does_not() {
    // The list may use any name of the model.
    for name in ["zed/one", "ZED/One:nitro", "zed/one-20260101", "zed/one:free", "one", "~zed/one-latest"] {
        let mut alias = row("~zed/one-latest", "~zed/one-latest");
        alias.alias_target = Some(AliasTarget { name: "One".to_owned(), slug: "zed/one".parse().unwrap() });
        let first = vec![row("zed/one", "zed/one-20260101"), row("zed/one:free", "zed/one-20260101"), alias];
        let fixture = Fixture::new(first).await;
        let banned = fixture.guardrail(&format!(r#""ignored_models":["{name}"]"#)).await;
        let allowed = fixture.guardrail(&format!(r#""allowed_models":["{name}"]"#)).await;
        let both = async |model| (fixture.rule(banned, model).await, fixture.rule(allowed, model).await);
        assert_eq!(both("zed/one").await, (IGNORED, None), "{name}");
        for slug in ["zed/one-20260601", "zed/one-2", "zed/entirely-different"] {
            fixture.import(vec![row("zed/one", slug), row("zed/one:free", slug)], ImportMode::Merge).await;
            assert_eq!(both("zed/one").await, (IGNORED, ALLOWED), "{name}, then {slug}");
            assert_eq!(both("zed/one:free").await, (IGNORED, ALLOWED), "{name}, then {slug}");
        }
        assert_eq!(fixture.stored(banned).await.rules.ignored_models.unwrap(), ["zed/one-20260101"], "the stored slug");
        fixture.import(vec![row("zed/one", "zed/one-20260101")], ImportMode::Merge).await;
        assert_eq!(both("zed/one").await, (IGNORED, None), "the slug is back");
    }
}

#[tokio::test]
async fn ban_survives_temporary_removal_of_the_model() {
    for served in [false, true] {
        let mut fixture = Fixture::new(vec![row("zed/one", "zed/one-20260101"), row("zed/two", "zed/two")]).await;
        if served {
            fixture.served.insert("zed/one".parse().unwrap());
        }
        let banned = fixture.guardrail(r#""ignored_models":["zed/one"]"#).await;
        let allowed = fixture.guardrail(r#""allowed_models":["zed/one"]"#).await;
        fixture.import(vec![row("zed/two", "zed/two")], ImportMode::Replace).await;
        let kept = fixture.rows().await.iter().any(|row| row.id.as_str() == "zed/one");
        assert_eq!(kept, served, "a replacement keeps served models");
        // The row of a configured endpoint has its id as its slug.
        assert_eq!(fixture.rule(banned, "zed/one").await, IGNORED);
        fixture.import(vec![row("zed/one", "zed/one-20260601"), row("zed/two", "zed/two")], ImportMode::Replace).await;
        assert_eq!((fixture.rule(banned, "zed/one").await, fixture.rule(allowed, "zed/one").await), (IGNORED, ALLOWED));
        assert_eq!(fixture.rule(banned, "zed/two").await, None);
    }
}

#[tokio::test]
async fn ban_follows_model_when_its_id_changes_before_its_slug() {
    let fixture = Fixture::new(vec![row("zed/old", "zed/x-1"), row("zed/old:free", "zed/x-1")]).await;
    let banned = fixture.guardrail(r#""ignored_models":["zed/old"]"#).await;
    fixture.import(vec![row("zed/new", "zed/x-1"), row("zed/new:free", "zed/x-1")], ImportMode::Replace).await;
    fixture.import(vec![row("zed/new", "zed/x-2"), row("zed/new:free", "zed/x-2")], ImportMode::Replace).await;
    assert_eq!(fixture.rule(banned, "zed/new").await, IGNORED);
    assert_eq!(fixture.rule(banned, "zed/new:free").await, IGNORED, "a variant keeps its own former id");
    let renamed = vec![named(row("zed/newest", "zed/x-3"), "zed/old")];
    fixture.import(renamed, ImportMode::Replace).await;
    assert_eq!(fixture.rule(banned, "zed/newest").await, IGNORED, "the file says so itself");
}

#[tokio::test]
async fn ban_distinguishes_models_with_common_prefix() {
    let dated = "zed/one-2026-01-01";
    let rows = |slug: &str| {
        vec![row("zed/one", slug), row(dated, dated), row("zed/one-mini", "zed/one-mini-1"), row("zed/o", "zed/o")]
    };
    let fixture = Fixture::new(rows("zed/one")).await;
    let of_dated = fixture.guardrail(r#""ignored_models":["zed/one-2026-01-01"]"#).await;
    let of_one = fixture.guardrail(r#""ignored_models":["zed/one"]"#).await;
    for slug in ["zed/one", "zed/one-2026-06-01"] {
        fixture.import(rows(slug), ImportMode::Replace).await;
        for model in ["zed/one", dated, "zed/one-mini", "zed/o"] {
            assert_eq!(fixture.rule(of_dated, model).await, (model == dated).then_some("ignored_models"), "{model}");
            assert_eq!(fixture.rule(of_one, model).await, (model == "zed/one").then_some("ignored_models"), "{model}");
        }
    }
    // The list bans every id that shared the slug when it was written.
    let fixture = Fixture::new(vec![row("zed/one", "zed/x"), row("zed/uno", "zed/x"), row("zed/due", "zed/y")]).await;
    let banned = fixture.guardrail(r#""ignored_models":["zed/uno"]"#).await;
    fixture.import(vec![row("zed/one", "zed/x-1"), row("zed/uno", "zed/x-2")], ImportMode::Merge).await;
    let rules = [fixture.rule(banned, "zed/one").await, fixture.rule(banned, "zed/uno").await];
    assert_eq!((rules, fixture.rule(banned, "zed/due").await), ([IGNORED; 2], None));
}

#[tokio::test]
async fn ban_ids_follow_their_list_through_changes_and_versions() {
    let fixture = Fixture::new(vec![row("zed/one", "zed/one-1"), row("zed/two", "zed/two-1")]).await;
    let id = fixture.guardrail(r#""ignored_models":["zed/one"]"#).await;
    fixture.change(id, r#"{"description":"another"}"#).await;
    fixture.change(id, r#"{"ignored_models":["zed/two"]}"#).await;
    fixture.change(id, r#"{"ignored_models":null}"#).await;
    assert_eq!(fixture.stored(id).await.rules.ignored_model_ids, Vec::<String>::new(), "the ids go with their list");
    fixture.import(vec![row("zed/one", "zed/one-2"), row("zed/two", "zed/two-2")], ImportMode::Replace).await;
    let banned = async || [fixture.rule(id, "zed/one").await, fixture.rule(id, "zed/two").await];
    assert_eq!(banned().await, [None, None]);
    for (version, expected) in [(1, [IGNORED, None]), (2, [IGNORED, None]), (3, [None, IGNORED]), (4, [None, None])] {
        let restore = fixture.ports().await;
        restore.restore_version(&Change::plain(&by()), &id.to_string(), version).await.unwrap();
        assert_eq!(banned().await, expected, "version {version}");
    }
    fixture.change(id, r#"{"ignored_models":["zed/one"]}"#).await;
    assert_eq!(fixture.stored(id).await.rules.ignored_models.unwrap(), ["zed/one-2"], "a new list has the new slug");
    assert_eq!(banned().await, [IGNORED, None]);
}
