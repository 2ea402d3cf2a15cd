//! Property tests run as many cases as `PROPTEST_CASES` requests.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
}

/// Returns true for a fixed number of cases, which overrides the variable.
fn fixes_the_cases(line: &str) -> bool {
    let sets = ["with_cases(", "cases:"].iter().any(|text| line.contains(text));
    line.contains("proptest_config(") && sets && !line.contains("property_cases(")
}

#[test]
fn property_tests_have_no_fixed_number_of_cases() {
    assert!(fixes_the_cases("#![proptest_config(ProptestConfig::with_cases(64))]"));
    assert!(fixes_the_cases("#![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "tests", "migrations"] {
        sources(&root.join(folder), &mut files);
    }
    let mut configured = 0;
    for file in files.iter().filter(|file| !file.ends_with("xtask/tests/properties.rs")) {
        for line in fs::read_to_string(file).unwrap().lines() {
            configured += usize::from(line.contains("proptest_config("));
            assert!(!fixes_the_cases(line), "{}: {line}", file.display());
        }
    }
    assert!(configured > 5, "{configured} configurations were found");
}
