//! The first of three checks of the layers (the others: deny.toml and clippy.toml): allowed dependencies between
//! crates, checked with `cargo metadata`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod areas;
mod bans;
mod graph;
mod rules;

use areas::{API, DOMAIN, Order, Source, backward_arrows, sources};
use graph::{Dependency, Graph, Kind};
use rules::violations;

#[test]
fn workspace_dependencies_follow_layers() {
    let found = violations(&Graph::of_workspace());
    assert!(found.is_empty(), "the layers are broken:\n  {}", found.join("\n  "));
}

#[test]
fn domain_closure_contains_no_io() {
    let (closure, allowed) = (graph::domain_closure(), rules::DOMAIN_CLOSURE);
    assert!(closure.contains(&"serde_json".to_owned()), "cargo tree was not understood: {closure:?}");
    let strangers: Vec<_> = closure.iter().filter(|name| !allowed.contains(&name.as_str())).collect();
    assert!(strangers.is_empty(), "domain pulls in {strangers:?}; is that needed, and does it do I/O?");
}

fn with(krate: &str, name: &str, kind: Kind) -> Vec<String> {
    let mut graph = Graph::of_workspace();
    graph.add(krate, Dependency { name: name.to_owned(), kind });
    violations(&graph)
}

#[test]
fn planted_violations_are_caught() {
    let planted = [
        ("domain", "tokio"),
        ("domain", "adapters-system"),
        ("adapters-cache", "adapters-storage"),
        ("adapters-storage", "actix-web"),
        ("adapters-blob", "hyper"),
        ("adapters-provider", "sea-orm"),
        ("api-actix", "adapters-cache"),
        ("api-actix", "sea-orm"),
        ("api-actix", "hyper"),
        ("tollgate", "actix-web"),
        ("tollgate", "sea-orm"),
        ("catalogue-json", "api-actix"),
        ("migrations", "domain"),
        ("adapters-system", "tollgate"),
        ("xtask", "domain"),
    ];
    for (krate, name) in planted {
        let found = with(krate, name, Kind::Normal);
        assert_eq!(found.len(), 1, "{krate} -> {name}: {found:?}");
        assert!(found[0].starts_with(&format!("{krate} -> {name}")), "{found:?}");
    }
}

#[test]
fn development_dependencies_follow_layers() {
    assert_eq!(with("api-actix", "adapters-storage", Kind::Development).len(), 1);
    assert_eq!(with("adapters-blob", "api-actix", Kind::Development).len(), 1);
    // A crate without a runtime may use one in its tests.
    assert!(with("domain", "tokio", Kind::Development).is_empty());
    assert_eq!(with("domain", "tokio", Kind::Build).len(), 1);
}

#[test]
fn violations_report_crate_without_layer() {
    let mut graph = Graph::of_workspace();
    graph.add("adapters-new", Dependency { name: "domain".to_owned(), kind: Kind::Normal });
    assert_eq!(violations(&graph), ["adapters-new is in no layer: place it in crates/xtask/tests/layers/rules.rs"]);
}

#[test]
fn areas_depend_on_earlier_ones_only() {
    for order in [&DOMAIN, &API] {
        let found = backward_arrows(order, &sources(order));
        assert!(found.is_empty(), "the order of the areas is broken:\n  {}", found.join("\n  "));
    }
}

fn with_planted(order: &Order, path: &str, text: &str) -> Vec<String> {
    let mut all = sources(order);
    all.push(Source::new(path, text));
    backward_arrows(order, &all)
}

#[test]
fn arrow_from_http_kernel_to_endpoint_is_caught_when_planted() {
    let planted = with_planted(&API, "http/planted.rs", "use crate::endpoints::get_model;");
    assert_eq!(planted, ["http/planted.rs -> endpoints"]);
    let planted = with_planted(&API, "endpoints/planted.rs", "use crate::app::ROUTES;");
    assert_eq!(planted, ["endpoints/planted.rs -> app"]);
}

#[test]
fn backward_arrow_is_caught_when_planted() {
    let with = |path: &str, text: &str| with_planted(&DOMAIN, path, text);
    assert_eq!(with("usage/planted.rs", "use crate::decision::Decision;"), ["usage/planted.rs -> decision"]);
    assert_eq!(with("money/planted.rs", "fn f(a: crate::usage::UsageRecord) {}"), ["money/planted.rs -> usage"]);
    assert_eq!(with("new.rs", "").len(), 1, "an area without a place");
    let allowed = "//! See [`crate::decision`].\nuse crate::ids::KeyId;\n#[cfg(test)]\nmod tests {\n    use crate::decision::*;\n}";
    assert!(with("usage/planted.rs", allowed).is_empty(), "comments and tests do not count");
    assert!(with("usage/tests/planted.rs", "use crate::decision::Decision;").is_empty());
}
