//! The deployment files and the documentation match the code and each other.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the instructions of a Dockerfile, with continued lines joined and comments removed.
fn instructions(dockerfile: &str) -> Vec<String> {
    let lines = dockerfile.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    joined.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Returns the violated rules of a Dockerfile.
fn image_violations(dockerfile: &str, toolchain: &str) -> Vec<String> {
    let mut found = Vec::new();
    let instructions = instructions(dockerfile);
    let of_kind = |kind: &str| -> Vec<&str> {
        instructions.iter().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' ')).collect()
    };
    for base in of_kind("FROM").into_iter().filter(|base| *base != "scratch") {
        if !base.starts_with(&format!("rust:{toolchain}-")) {
            found.push(format!("{base} is not the toolchain {toolchain}"));
        }
    }
    if !of_kind("ENV").iter().any(|line| line.contains(&format!("RUSTUP_TOOLCHAIN={toolchain} "))) {
        found.push("rustup may download another toolchain".to_owned());
    }
    if !of_kind("ADD").is_empty() {
        found.push("ADD reads more than the files of the build".to_owned());
    }
    let is_number = |part: &str| part.parse::<u32>().is_ok_and(|id| id > 0);
    if !of_kind("USER").last().is_some_and(|user| user.split(':').all(is_number)) {
        found.push("the user is root or has no number".to_owned());
    }
    for needed in ["ENTRYPOINT [", "CMD [", "STOPSIGNAL SIGTERM", "HEALTHCHECK "] {
        if !instructions.iter().any(|line| line.starts_with(needed)) {
            found.push(format!("{needed} is missing"));
        }
    }
    found
}

fn toolchain() -> String {
    let file = text("rust-toolchain.toml");
    let channel = file.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
    channel.trim_matches('"').to_owned()
}

#[test]
fn image_has_pinned_toolchain_and_no_root() {
    let dockerfile = text("Dockerfile");
    let toolchain = toolchain();
    assert_eq!(image_violations(&dockerfile, &toolchain), Vec::<String>::new());
    assert_eq!(image_violations(&dockerfile, "1.0.0").len(), 2);
    for (from, to) in [
        ("USER 65532:65532", "USER tollgate"),
        ("USER 65532:65532", "USER 0:0"),
        ("WORKDIR /src", "ADD https://example.com/a /a"),
        ("FROM rust:", "FROM other:"),
        ("ENTRYPOINT [\"tollgate\"]", "ENTRYPOINT tollgate"),
        ("STOPSIGNAL SIGTERM", ""),
    ] {
        assert!(dockerfile.contains(from), "{from}");
        assert_eq!(image_violations(&dockerfile.replace(from, to), &toolchain).len(), 1, "{from} -> {to}");
    }
}

#[test]
fn build_context_has_existing_files_and_all_sources() {
    let ignored = text(".dockerignore");
    let included: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignored.lines().any(|line| line == "*"), "the list names what is included");
    for name in included.iter().filter(|name| !name.contains('*')) {
        assert!(root().join(name).exists(), "{name}");
    }
    for needed in ["Cargo.lock", "Cargo.toml", "crates", "migrations", "tests", "deploy/container"] {
        assert!(included.contains(&needed), "{needed}");
    }
}

/// Returns the names of metrics in a text: words with a known beginning.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with("tollgate_") || word.starts_with("process_"));
    named.map(str::to_owned).collect()
}

/// Returns the names in the table of metrics.
fn documented_metrics() -> BTreeSet<String> {
    let page = text("docs/monitoring.md");
    let section = section(&page, "## Metrics");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" | ").map(|(cell, _)| cell));
    cells.flat_map(metrics).collect()
}

/// Returns the text below a heading, up to the next heading of its level or above.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading} is missing")) + 1;
    let body = &page[start + heading.len()..];
    let level = heading.chars().take_while(|c| *c == '#').count();
    let ends = (1..=level).filter_map(|level| body.find(&format!("\n{} ", "#".repeat(level))));
    &body[..ends.min().unwrap_or(body.len())]
}

#[test]
fn dashboard_and_alerts_use_documented_metrics() {
    let known = documented_metrics();
    assert!(known.len() > 50 && known.contains("tollgate_http_request_duration_seconds"), "{known:?}");
    for file in ["deploy/grafana/tollgate.json", "deploy/prometheus/alerts.yaml", "deploy/prometheus/alerts_test.yaml"]
    {
        let used = metrics(&text(file));
        assert!(used.len() > 20, "{file}: {used:?}");
        for name in used {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_known = known.contains(&name) || family.is_some_and(|family| known.contains(family));
            assert!(is_known, "{file}: {name} is not in docs/monitoring.md");
        }
    }
}

/// Returns the anchors of the headings of a page, as links name them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| -> String {
        let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn alerts_have_runbooks_and_are_documented() {
    let rules = text("deploy/prometheus/alerts.yaml");
    let page = text("docs/runbook.md");
    let anchors = anchors(&page);
    let table = section(&page, "## Alerts");
    let documented: BTreeSet<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)).collect();
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.lines().next().unwrap()).collect();
    assert!(names.len() > 15 && names.len() == alerts.len(), "{names:?}");
    assert_eq!(documented, names);
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        let runbook = alert.lines().find_map(|line| line.trim().strip_prefix("runbook: docs/runbook.md#"));
        assert!(runbook.is_some_and(|anchor| anchors.contains(anchor)), "{name}: {runbook:?}");
        assert!(alert.contains("severity: ") && alert.contains("summary: "), "{name}");
    }
}

/// Returns the seconds of a stop with the default settings, by the table of the configuration.
fn default_stop_seconds() -> u64 {
    let page = text("docs/configuration.md");
    let milliseconds = |section: &str, key: &str| -> u64 {
        let (_, rows) = page.split_once(&format!("## `[{section}]`")).unwrap();
        let row = rows.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).unwrap();
        row.split(" | ").nth(2).unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    };
    // The default of shutdown_timeout_ms is `limits.request_timeout_ms` + 5000. Background work has 30 s.
    let stop = milliseconds("server", "drain_ms") + milliseconds("server", "shutdown_timeout_ms");
    (stop + milliseconds("limits", "request_timeout_ms")) / 1000 + 30
}

#[test]
fn unit_waits_longer_than_a_stop() {
    let unit = text("deploy/tollgate.service");
    let timeout: u64 = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")?.parse().ok()).unwrap();
    assert_eq!(default_stop_seconds(), 100);
    assert!(timeout > default_stop_seconds());
    assert!(text("docs/install.md").contains("deploy/tollgate.service"));
}

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

/// Returns the names of all tests, and of the cases of contract suites.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    files.iter().flat_map(|file| test_names(&fs::read_to_string(file).unwrap(), is_contract(file))).collect()
}

fn is_contract(file: &Path) -> bool {
    file.to_str().is_some_and(|path| path.contains("domain/testing/contract"))
}

fn test_names(source: &str, is_contract: bool) -> Vec<String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("fn ") else { continue };
        let attributes =
            lines[..number].iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        let is_test = attributes.into_iter().any(|line| line.starts_with("#[test]") || line.contains("::test"));
        if is_test || is_contract && line.contains("async fn ") {
            found.push(rest.split(['(', '<']).next().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn outages_name_existing_tests() {
    let known = tests();
    assert!(known.len() > 1000, "{} tests were found", known.len());
    let page = text("docs/reliability.md");
    let rows: Vec<&str> = section(&page, "## Failures")
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| failure"))
        .collect();
    assert!(rows.len() > 12, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 2, "{row}");
        let named: Vec<&str> = cells[1].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test: {row}");
        for name in named {
            assert!(known.contains(name), "{name} is no test: {row}");
        }
    }
}

#[test]
fn test_names_have_an_attribute() {
    let source =
        "#[tokio::test]\n#[expect(x)]\nasync fn a() {}\nfn b() {}\n#[test]\nfn c() {}\npub(super) async fn d() {}";
    assert_eq!(test_names(source, false), ["a", "c"]);
    assert_eq!(test_names(source, true), ["a", "c", "d"]);
}
