//! The documentation must list exactly the configuration keys of the code.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap()
}

/// Returns the keys of `("key", Kind)` in the configuration's schema.
fn schema_keys() -> BTreeSet<String> {
    let schema = text("crates/tollgate/src/config/schema.rs");
    let kinds = ["Text", "Number", "Switch"];
    let entry = |piece: &str| {
        let (key, rest) = piece.split_once("\", ")?;
        kinds.iter().any(|kind| rest.starts_with(kind)).then(|| key.to_owned())
    };
    schema.split("(\"").skip(1).filter_map(entry).collect()
}

#[test]
fn documented_configuration_keys_match_schema() {
    let keys = schema_keys();
    assert!(
        keys.contains("listen") && keys.contains("prompt_overhead_tokens"),
        "the schema was not understood: {keys:?}"
    );
    let page = text("docs/configuration.md");
    let rows: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(key, _)| key.to_owned()))
        .collect();
    assert_eq!(rows, keys);
}
