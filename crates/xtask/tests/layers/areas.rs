//! The order of the areas inside a crate: each area depends on earlier ones only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::graph::root;

/// The order of the areas of a crate.
pub struct Order {
    /// The folder of the sources.
    folder: &'static str,
    /// The areas in their order. Areas of one line must not depend on each other, except for the first line, which is
    /// one area.
    lines: &'static [&'static [&'static str]],
    /// Permitted backward dependencies. An unneeded entry fails the test, so the list only shrinks.
    exceptions: &'static [(&'static str, &'static str)],
}

/// The order of the domain.
pub const DOMAIN: Order = Order {
    folder: "crates/domain/src",
    lines: &[
        &[
            "cursor",
            "edit",
            "error",
            "ids",
            "json",
            "money",
            "naming",
            "repetition",
            "secret",
            "system",
            "text",
            "version",
        ],
        &["audit", "change_feed"],
        &["authority"],
        &["change"],
        &["model", "question"],
        &["pricing", "statistics"],
        &["usage"],
        &["budget"],
        &["rate"],
        &["api_key", "container"],
        &["file", "routing", "workspace"],
        &["guardrail", "preset"],
        &["decision"],
        &["evidence", "observability"],
        &["evaluation", "operation", "retention"],
    ],
    exceptions: &[],
};

/// The order of the HTTP crate: what serves any endpoint, the description, the endpoints, their list, the servers.
pub const API: Order = Order {
    folder: "crates/api-actix/src",
    lines: &[
        &["detection", "gateway", "http", "operator", "rendered_catalogue", "rendered_openapi", "services"],
        &["openapi", "stopper"],
        &["endpoints"],
        &["app"],
        &["application", "fuzzing", "metrics_server"],
    ],
    exceptions: &[],
};

/// A source file: its path below `src`, and its text.
pub struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns the area of a file: its first folder, or its own name.
    fn area(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or_default();
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Returns true for a file that only tests include.
    fn is_test(&self) -> bool {
        let is_test = |part: &str| matches!(part, "tests" | "tests.rs" | "fixtures.rs");
        self.path.split('/').any(is_test)
    }

    /// Returns the areas that the code names after `crate::`.
    fn uses(&self) -> BTreeSet<&str> {
        let code = self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let names = lines.flat_map(|line| line.split("crate::").skip(1));
        names.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()).collect()
    }
}

/// Returns every source file of the crate.
pub fn sources(order: &Order) -> Vec<Source> {
    let folder = root().join(order.folder);
    let mut files = Vec::new();
    collect(&folder, &folder, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            files.push(Source { path: name, text: std::fs::read_to_string(&path).unwrap() });
        }
    }
}

/// Returns the backward dependencies that are no exceptions, and the unneeded exceptions.
pub fn backward_arrows(order: &Order, sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let mut needed = BTreeSet::new();
    for source in sources.iter().filter(|source| !source.is_test() && source.path != "lib.rs") {
        let area = source.area();
        let Some(level) = order.level_of(area) else {
            found.push(format!("{area} has no place in the order: add it to crates/xtask/tests/layers/areas.rs"));
            continue;
        };
        for used in source.uses() {
            if used == area || order.level_of(used).is_some_and(|below| below < level || below == 0 && level == 0) {
                continue;
            }
            match order.exceptions.iter().find(|(path, to)| *path == source.path && *to == used) {
                Some(exception) => drop(needed.insert(*exception)),
                None => found.push(format!("{} -> {used}", source.path)),
            }
        }
    }
    found.extend(order.exceptions.iter().filter(|exception| !needed.contains(*exception)).map(|(path, to)| {
        format!("the exception {path} -> {to} is not needed: remove it from crates/xtask/tests/layers/areas.rs")
    }));
    found
}

impl Order {
    fn level_of(&self, area: &str) -> Option<usize> {
        self.lines.iter().position(|line| line.contains(&area))
    }
}
