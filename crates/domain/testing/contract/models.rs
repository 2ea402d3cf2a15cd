//! Cases of [`crate::model::ModelRepository`].

use super::super::join_all;
use super::Stores;
use super::samples::{audit, catalogue_version};
use crate::json::Json;
use crate::model::{AliasTarget, Architecture, CatalogueChange, Model, Pricing, TopProvider};
use crate::money::Price;

suite! {
    /// Every case of the port's contract.
    model_repository_cases as model_repository_contract over Stores {
        list_returns_applied_rows,
        updated_row_keeps_its_position,
        apply_changes_nothing_for_outdated_version,
        concurrent_applies_succeed_once,
        apply_takes_many_rows,
    }
}

fn row(id: &str) -> Model {
    Model::minimal(id.parse().unwrap(), Pricing::per_token(Price::ZERO, Price::ZERO))
}

fn change(upsert: &[Model], remove: &[&str]) -> CatalogueChange {
    CatalogueChange { upsert: upsert.to_vec(), remove: remove.iter().map(|id| id.parse().unwrap()).collect() }
}

async fn apply(stores: &Stores, change: CatalogueChange) {
    let version = catalogue_version(stores).await;
    assert!(stores.models.apply(&change, version, &audit()).await.unwrap(), "no concurrent change");
    assert!(catalogue_version(stores).await > version, "the feed is told");
}

async fn ids(stores: &Stores) -> Vec<String> {
    stores.models.list().await.unwrap().into_iter().map(|row| row.id.to_string()).collect()
}

fn full() -> Model {
    let json = |text: &str| Json::parse(text).unwrap();
    let price = |text: &str| text.parse::<Price>().unwrap();
    Model {
        canonical_slug: "acme/judge-20260101".parse().unwrap(),
        name: "Acme: Judge ✓".to_owned(),
        description: "Says \"yes\" or 'no'.\nTwo lines.".to_owned(),
        created: 1_790_000_000,
        context_length: Some(1_000_000),
        architecture: Architecture {
            modality: Some("text+image->decisions".to_owned()),
            input_modalities: vec!["text".to_owned(), "image".to_owned()],
            output_modalities: vec!["decisions".to_owned(), "of-the-future".to_owned()],
            tokenizer: Some("Other".to_owned()),
            instruct_type: Some("chatml".to_owned()),
        },
        pricing: Pricing {
            prompt: price("0.0000000208333333333333"),
            completion: price("-1"),
            image: price("0.10"),
            request: price("0"),
            further: vec![("web_search".to_owned(), price("0.01")), ("input_cache_read".to_owned(), price("1e-7"))],
            overrides: Some(json("[ {\"min_context\":1.50} ]")),
            is_known: true,
        },
        top_provider: TopProvider { context_length: Some(32_000), is_moderated: true, max_completion_tokens: Some(1) },
        supported_parameters: vec!["seed".to_owned(), "logprobs".to_owned()],
        alias_target: Some(AliasTarget { name: "Acme: Judge".to_owned(), slug: "acme/other".parse().unwrap() }),
        renamed_from: vec!["acme/old".parse().unwrap(), "acme/older".parse().unwrap()],
        further: vec![
            ("hugging_face_id".to_owned(), json("null")),
            ("benchmarks".to_owned(), json("{\"z\":1.0, \"a\" :1E2,\"big\":12345678901234567890123}")),
        ],
        ..row("acme/judge:free")
    }
}

async fn list_returns_applied_rows(stores: &Stores) {
    assert_eq!(stores.models.list().await.unwrap(), []);
    let rows = [full(), row("acme/bare")];
    apply(stores, change(&rows, &[])).await;
    let listed = stores.models.list().await.unwrap();
    assert_eq!(listed, rows, "field by field");
    let texts = |row: &Model| {
        let further: Vec<String> = row.further.iter().map(|(_, json)| json.text().to_owned()).collect();
        let overrides = row.pricing.overrides.as_ref().map(|json| json.text().to_owned());
        (further, overrides, row.pricing.prompt.to_string(), row.pricing.image.to_string())
    };
    assert_eq!(
        listed.iter().map(texts).collect::<Vec<_>>(),
        rows.iter().map(texts).collect::<Vec<_>>(),
        "byte for byte"
    );
}

async fn updated_row_keeps_its_position(stores: &Stores) {
    apply(stores, change(&[row("a/c"), row("a/a"), row("a/b")], &[])).await;
    let renamed = Model { name: "New".to_owned(), ..row("a/a") };
    apply(stores, change(&[row("a/0"), renamed.clone()], &["a/c", "a/unknown"])).await;
    assert_eq!(stores.models.list().await.unwrap(), [renamed, row("a/b"), row("a/0")]);
    apply(stores, change(&[row("a/c")], &[])).await;
    assert_eq!(ids(stores).await, ["a/a", "a/b", "a/0", "a/c"], "a row that comes back comes last");
}

async fn apply_changes_nothing_for_outdated_version(stores: &Stores) {
    let stale = catalogue_version(stores).await;
    apply(stores, change(&[row("a/a")], &[])).await;
    let now = catalogue_version(stores).await;
    for version in [stale, now + 1] {
        assert!(!stores.models.apply(&change(&[row("a/b")], &["a/a"]), version, &audit()).await.unwrap());
    }
    assert_eq!(ids(stores).await, ["a/a"]);
    assert_eq!(catalogue_version(stores).await, now);
}

async fn concurrent_applies_succeed_once(stores: &Stores) {
    let version = catalogue_version(stores).await;
    let rivals = (0..8).map(|number| async move {
        let rows = [row(&format!("a/{number}")), row(&format!("b/{number}"))];
        stores.models.apply(&change(&rows, &[]), version, &audit()).await.unwrap()
    });
    let won = join_all(rivals).await;
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    let winner = won.iter().position(|won| *won).unwrap();
    assert_eq!(
        ids(stores).await,
        [format!("a/{winner}"), format!("b/{winner}")],
        "all of one and nothing of the others"
    );
}

async fn apply_takes_many_rows(stores: &Stores) {
    let rows: Vec<Model> = (0..1_500).map(|number| row(&format!("many/{}", number * 7_919 % 1_500))).collect();
    apply(stores, change(&rows, &[])).await;
    assert_eq!(stores.models.list().await.unwrap(), rows, "in insertion order");
    let gone: Vec<String> = rows.iter().skip(1).map(|row| row.id.to_string()).collect();
    apply(stores, change(&[], &gone.iter().map(String::as_str).collect::<Vec<_>>())).await;
    assert_eq!(stores.models.list().await.unwrap(), rows[..1]);
}
