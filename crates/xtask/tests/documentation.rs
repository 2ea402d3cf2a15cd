//! The documentation must list exactly the configuration keys of the code.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// Returns the fields of the configuration's structs, which deny unknown fields.
fn schema_keys() -> BTreeSet<String> {
    let folder = root().join("crates/tollgate/src/config");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap());
    sources.flat_map(|source| fields(&source)).collect()
}

fn fields(source: &str) -> Vec<String> {
    let structs = source.split("#[serde(deny_unknown_fields)]\n").skip(1);
    let bodies = structs.filter_map(|rest| rest.split_once("{\n")?.1.split_once("\n}").map(|(body, _)| body));
    let lines = bodies.flat_map(str::lines).map(|line| line.trim().trim_start_matches("pub "));
    lines.filter(|line| !line.starts_with("//")).filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect()
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

/// Returns the pages below docs, and the README, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The most characters of a table cell. A longer one is prose that a reader of the table cannot find.
const MAX_CELL: usize = 200;

/// Returns the cells of the tables of a page that are longer than [`MAX_CELL`] characters, with their lines.
fn long_cells(page: &str) -> Vec<(usize, usize)> {
    let rows = page.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    let cells = rows.flat_map(|(number, line)| {
        // `\|` is a character of a cell.
        let line = line.replace("\\|", "¦");
        line.split('|').map(|cell| (number + 1, cell.trim().chars().count())).collect::<Vec<_>>()
    });
    cells.filter(|(_, length)| *length > MAX_CELL).collect()
}

#[test]
fn table_cells_are_short() {
    let planted = format!("| a | b |\n|---|---|\n| `x \\| y` | {} |", "w".repeat(MAX_CELL + 1));
    assert_eq!(long_cells(&planted), [(3, MAX_CELL + 1)]);
    assert!(long_cells(&format!("| {} |", "w".repeat(MAX_CELL))).is_empty());
    let pages = pages();
    assert!(pages.len() > 40, "{} pages were found", pages.len());
    for (path, page) in pages {
        let found = long_cells(&page);
        assert!(found.is_empty(), "{}: cells (line, characters) above {MAX_CELL}: {found:?}", path.display());
    }
}

/// The tests compile the example; the page shows exactly that file.
#[test]
fn embedding_shows_the_example() {
    let page = text("docs/embedding.md");
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let (shown, _) = rest.split_once("```\n").unwrap();
    assert_eq!(shown, text("crates/adapters-system/examples/one_question.rs"));
}
