//! The allowed dependencies. A new one needs an entry here with the reason why it points inward.

use std::collections::BTreeSet;

use super::graph::{Dependency, Graph, Kind};

/// A crate of this workspace and its allowed dependencies.
struct Layer {
    name: &'static str,
    /// Allowed crates of this workspace.
    ours: &'static [&'static str],
    /// Allowed technologies; see [`TECHNOLOGIES`].
    technologies: &'static [&'static str],
    /// If set, the only allowed third-party crates.
    others: Option<&'static [&'static str]>,
}

const ALL_OF_OURS: &[&str] = &[
    "domain",
    "wires",
    "migrations",
    "adapters-storage",
    "adapters-cache",
    "adapters-provider",
    "adapters-blob",
    "adapters-s3",
    "adapters-broadcast",
    "adapters-system",
    "adapters-journal",
    "adapters-metrics",
    "adapters-valkey",
    "http-client",
    "http-server",
    "api-actix",
];

/// domain <- adapters-*, domain <- api-actix, all <- tollgate.
const LAYERS: &[Layer] = &[
    Layer { name: "domain", ours: &[], technologies: &[], others: Some(DOMAIN_DIRECT) },
    Layer { name: "wires", ours: &["domain"], technologies: &[], others: Some(&["serde", "serde_json", "thiserror"]) },
    Layer { name: "migrations", ours: &[], technologies: &["sea-orm"], others: None },
    Layer {
        name: "adapters-storage",
        // The server is for its tests.
        ours: &["domain", "wires", "migrations", "test-servers"],
        technologies: &["rustls", "sea-orm", "tokio"],
        others: None,
    },
    Layer { name: "adapters-cache", ours: &["domain"], technologies: &["moka", "tokio"], others: None },
    Layer {
        name: "adapters-provider",
        ours: &["domain", "http-client", "wires"],
        technologies: &["tokio"],
        others: None,
    },
    Layer { name: "adapters-broadcast", ours: &["domain", "http-client"], technologies: &["tokio"], others: None },
    Layer { name: "adapters-blob", ours: &["domain"], technologies: &["rustix", "tokio"], others: None },
    Layer {
        name: "adapters-s3",
        // The server is for its tests.
        ours: &["domain", "http-client", "test-object-store"],
        technologies: &["object_store", "tokio"],
        others: None,
    },
    Layer { name: "adapters-system", ours: &["domain"], technologies: &["getrandom", "rustix", "tokio"], others: None },
    Layer { name: "adapters-journal", ours: &["domain"], technologies: &["rustix", "tokio"], others: None },
    Layer { name: "adapters-metrics", ours: &["domain"], technologies: &["prometheus"], others: None },
    Layer {
        name: "adapters-valkey",
        // The server is for its tests.
        ours: &["domain", "test-servers"],
        technologies: &["redis", "rustls", "tokio"],
        others: None,
    },
    // Calls out, below the adapters.
    Layer { name: "http-client", ours: &[], technologies: &["hyper", "rustls", "tokio"], others: None },
    // Connections, below any API.
    Layer { name: "http-server", ours: &[], technologies: &["actix", "tokio"], others: None },
    // Validates bodies in tests only.
    Layer {
        name: "openapi-check",
        ours: &[],
        technologies: &[],
        others: Some(&["anyhow", "chrono", "regex", "serde_json"]),
    },
    Layer {
        name: "api-actix",
        ours: &["domain", "wires", "http-server", "openapi-check"],
        technologies: &["actix", "tokio"],
        others: None,
    },
    // The binary wires everything.
    Layer { name: "tollgate", ours: ALL_OF_OURS, technologies: &["plotters", "tokio"], others: None },
    // The end-to-end tests use the binary from outside and read its database.
    Layer {
        name: "tollgate-tests",
        ours: &["openapi-check", "test-object-store", "test-servers"],
        technologies: &["hyper", "sea-orm", "tokio"],
        others: None,
    },
    // The chaos runs use the binary from outside, over the harness of the end-to-end tests.
    Layer {
        name: "chaos",
        ours: &["test-object-store", "test-servers", "tollgate-tests"],
        technologies: &["tokio"],
        others: None,
    },
    // The ledger is tested with the real store and the real journal; only the binary combines them otherwise.
    Layer {
        name: "ledger-tests",
        ours: &["domain", "adapters-journal", "adapters-storage", "adapters-system"],
        technologies: &["tokio"],
        others: None,
    },
    // The benchmark uses the binary from outside, fills its database through the ports, compares it with a bare proxy
    // and measures parts in its own process.
    Layer {
        name: "bench",
        ours: &["domain", "adapters-metrics", "adapters-storage", "adapters-system", "test-servers"],
        technologies: &["actix", "hyper", "sea-orm", "tokio"],
        others: None,
    },
    // The fuzz targets read by one crate the output of another.
    Layer {
        name: "fuzz",
        ours: &["domain", "wires", "adapters-journal", "adapters-provider", "api-actix"],
        technologies: &[],
        others: Some(&["anyhow", "bytes", "libfuzzer-sys", "serde_json"]),
    },
    // Servers for tests are programs of the machine, started as processes.
    Layer { name: "test-servers", ours: &[], technologies: &[], others: Some(&["anyhow", "tempfile"]) },
    // The object store of tests runs in their process.
    Layer {
        name: "test-object-store",
        ours: &[],
        technologies: &["hyper", "tokio"],
        others: Some(&["anyhow", "async-trait", "hyper", "hyper-util", "s3s", "s3s-fs", "tempfile", "tokio"]),
    },
    // Character tables are generated from Unicode's data.
    Layer {
        name: "xtask",
        ours: &[],
        technologies: &[],
        others: Some(&[
            "anyhow",
            "cargo_metadata",
            "clap",
            "flate2",
            "icu_properties",
            "sha2",
            "tar",
            "unicode-properties",
        ]),
    },
];

/// Crates of each technology, by name prefix.
const TECHNOLOGIES: &[(&str, &[&str])] = &[
    ("actix", &["actix", "awc", "utoipa-actix"]),
    ("sea-orm", &["sea-orm", "sea-query", "sqlx", "libsqlite3-sys", "rusqlite"]),
    ("hyper", &["hyper", "reqwest", "ureq", "awc", "h2"]),
    ("rustls", &["rustls", "tokio-rustls", "native-tls", "openssl"]),
    ("rustix", &["rustix", "nix", "cap-"]),
    ("object_store", &["object_store", "aws-sdk", "rusoto"]),
    ("moka", &["moka"]),
    ("redis", &["redis", "fred"]),
    ("plotters", &["plotters"]),
    ("prometheus", &["prometheus"]),
    ("getrandom", &["getrandom", "rand"]),
    ("tokio", &["tokio", "async-std", "smol"]),
];

/// The direct dependencies of `domain`. No runtime, no ORM, no HTTP, no clock, no random source.
const DOMAIN_DIRECT: &[&str] = &[
    "async-trait",
    "base64",
    "chrono",
    "futures-util",
    "mockall", // only with the feature `mock`
    "regex",
    "regex-automata",
    "regex-syntax",
    "serde",
    "serde_json",
    "sha2",
    "shuttle", // only with `--cfg shuttle`
    "statrs",
    "strsim",
    "thiserror",
    "tracing",
    "uuid",
];

/// All crates in the build of `domain` alone.
pub const DOMAIN_CLOSURE: &[&str] = &[
    "aho-corasick",
    "approx",
    "async-trait",
    "autocfg",
    "base64",
    "block-buffer",
    "cfg-if",
    "chrono",
    "const-oid",
    "cpufeatures",
    "crypto-common",
    "digest",
    "futures-core",
    "futures-macro",
    "futures-task",
    "futures-util",
    "hybrid-array",
    "itoa",
    "libc",
    "libm",
    "memchr",
    "num-traits",
    "once_cell",
    "pin-project-lite",
    "proc-macro2",
    "quote",
    "regex",
    "regex-automata",
    "regex-syntax",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "sha2",
    "slab",
    "statrs",
    "strsim",
    "syn",
    "thiserror",
    "thiserror-impl",
    "tracing",
    "tracing-attributes",
    "tracing-core",
    "typenum",
    "unicode-ident",
    "uuid",
    "zmij",
];

/// Returns the violations in the graph.
pub fn violations(graph: &Graph) -> Vec<String> {
    let ours: BTreeSet<&str> = LAYERS.iter().map(|layer| layer.name).collect();
    let mut found = Vec::new();
    for (krate, dependencies) in graph.crates() {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == krate) else {
            found.push(format!("{krate} is in no layer: place it in crates/xtask/tests/layers/rules.rs"));
            continue;
        };
        found.extend(dependencies.iter().filter_map(|dependency| {
            let why = fault(layer, dependency, &ours)?;
            Some(format!("{krate} -> {} ({:?}): {why}", dependency.name, dependency.kind))
        }));
    }
    found
}

fn fault(layer: &Layer, dependency: &Dependency, ours: &BTreeSet<&str>) -> Option<&'static str> {
    let name = dependency.name.as_str();
    if ours.contains(name) {
        return (!layer.ours.contains(&name)).then_some("this arrow points outward");
    }
    if dependency.kind == Kind::Development {
        // Development dependencies are not shipped.
        return None;
    }
    if layer.others.is_some_and(|allowed| !allowed.contains(&name)) {
        return Some("it is not on the crate's allow-list");
    }
    let stranger = TECHNOLOGIES
        .iter()
        .filter(|(technology, _)| !layer.technologies.contains(technology))
        .any(|(_, beginnings)| beginnings.iter().any(|beginning| name.starts_with(beginning)));
    stranger.then_some("this technology stays in its adapter")
}
