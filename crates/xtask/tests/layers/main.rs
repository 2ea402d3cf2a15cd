//! The first of three checks of the layers (the others: deny.toml and clippy.toml): allowed dependencies between
//! crates, checked with `cargo metadata`.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;

mod areas;
mod bans;
mod files;
mod graph;
mod rules;

use areas::{API, DOMAIN, Order, Source, backward_arrows, sources};
use files::{Arrows, arrows, arrows_of_workspace, circles, items_of_several_addresses};
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
        ("wires", "api-actix"),
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

#[test]
fn files_form_no_circle() {
    let found: Vec<String> = arrows_of_workspace()
        .iter()
        .flat_map(|(target, arrows)| {
            circles(arrows).into_iter().map(move |circle| format!("{target}: {}", circle.join(" -> ")))
        })
        .collect();
    assert!(found.is_empty(), "{} circles between files:\n  {}", found.len(), found.join("\n  "));
}

fn arrows_of(files: &[(&str, &str)]) -> Arrows {
    arrows(Path::new("src/lib.rs"), &|path| planted(files, path))
}

fn planted(files: &[(&str, &str)], path: &Path) -> Option<String> {
    files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
}

#[test]
fn items_of_domain_have_one_address() {
    let read = |path: &Path| std::fs::read_to_string(graph::root().join("crates/domain").join(path)).ok();
    let found = items_of_several_addresses(Path::new("src/lib.rs"), &read);
    assert!(found.is_empty(), "items have several addresses:\n  {}", found.join("\n  "));
}

#[test]
fn second_address_is_caught_when_planted() {
    let with = |b: &str| {
        let files = [
            ("src/lib.rs", "pub mod a; pub mod b; mod c;"),
            ("src/a.rs", "pub struct A; pub(crate) struct Private;"),
            ("src/b.rs", b),
            ("src/c.rs", "pub use crate::a::*; pub struct C;"),
        ];
        items_of_several_addresses(Path::new("src/lib.rs"), &|path| planted(&files, path))
    };
    for b in ["pub use crate::a::A;", "pub use super::a::*;", "pub use crate::c::*;"] {
        assert_eq!(with(b), ["crate::a::A, crate::b::A"], "{b}");
    }
    assert_eq!(with("pub use crate::a::A as B;"), ["crate::a::A, crate::b::B"]);
    for b in ["use crate::a::A;", "pub(crate) use crate::a::A;", "pub use crate::c::C;", "pub use std::fmt::Debug;"] {
        assert!(with(b).is_empty(), "{b}: {:?}", with(b));
    }
}

#[test]
fn circle_between_files_is_caught_when_planted() {
    let planted = [
        ("a type", "use crate::b::B; pub struct A(B);", "use super::a::A; pub struct B(A);"),
        ("a re-exported name", "use crate::B; pub struct A(B);", "pub struct B; fn f(_: crate::A) {}"),
        ("a module and a name", "use crate::b; pub fn a() { b::f() }", "pub fn f() { crate::a::a() }"),
        ("a macro", "pub fn a() { assert!(crate::b::f()) }", "pub fn f() -> bool { use crate::a::a; true }"),
        ("all names", "use crate::b::*; pub struct A;", "pub struct B(crate::a::A);"),
    ];
    for (kind, a, b) in planted {
        let lib = ("src/lib.rs", "mod a; mod b; pub use a::A; pub use b::B;");
        let found = circles(&arrows_of(&[lib, ("src/a.rs", a), ("src/b/mod.rs", b)]));
        assert_eq!(found, [vec!["src/a.rs".to_owned(), "src/b/mod.rs".to_owned()]].into(), "{kind}");
    }
}

#[test]
fn arrows_follow_names_to_the_files_that_define_them() {
    let lib = "pub mod a; mod b { mod c; pub use c::C; } pub use a::A; fn f() {}";
    let a = "use std::fmt::Display; use crate::b::C as D; pub struct A(D); #[cfg(test)] mod tests { use crate::f; }";
    let found = arrows_of(&[("src/lib.rs", lib), ("src/a.rs", a), ("src/b/c.rs", "pub struct C;")]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected: [(String, _); 3] = [
        ("src/a.rs".to_owned(), names(&["src/b/c.rs"])),
        ("src/b/c.rs".to_owned(), names(&[])),
        ("src/lib.rs".to_owned(), names(&[])),
    ];
    assert_eq!(found, Arrows::from(expected), "a re-export and a test are no arrows");
    let used = "mod a; pub use a::A; fn f(a: A) {}";
    let found = arrows_of(&[("src/lib.rs", used), ("src/a.rs", "pub struct A;")]);
    assert_eq!(found["src/lib.rs"], names(&["src/a.rs"]), "a re-export that the file uses is one");
    let globs = "mod a; mod b; mod c; pub use a::*; pub use b::*; pub use c::*;";
    let of_c = ("src/c.rs", "use crate::B; pub struct C(B);");
    let found = arrows_of(&[("src/lib.rs", globs), ("src/a.rs", ""), ("src/b.rs", "pub struct B;"), of_c]);
    assert_eq!(found["src/c.rs"], names(&["src/b.rs"]), "of several globs, the one with the name");
}
