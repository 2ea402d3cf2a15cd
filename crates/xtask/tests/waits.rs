//! No test waits by yielding in a loop: the number of turns that other tasks need is not known, so such a test fails by
//! chance. Tests wait for an event (`domain::testing::EventCount`, a channel) or for a paused clock.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The name that the check searches for.
const YIELD: &str = "yield_now";

/// Loops that do not wait for other tasks.
const ALLOWED: &[(&str, &str)] = &[
    ("http-client/src/deadline.rs", "not a test: sockets are polled again before a deadline is declared"),
    ("adapters-provider/tests/hostile.rs", "counts the turns that a task gets beside a busy one"),
    ("domain/tests/model.rs", "a scheduling point of the model checker"),
];

/// Returns the numbers of the lines that yield within a loop of their function. The sources are formatted, so the
/// enclosing blocks of a line are those that begin with less indentation.
fn yields_in_loops(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let yields = lines.iter().enumerate().filter(|(_, line)| {
        let code = line.trim_start();
        code.contains(&format!("{YIELD}()")) && !code.starts_with("//") && !code.contains("fn ")
    });
    yields.filter(|(place, _)| is_in_loop(&lines[..=*place])).map(|(place, _)| place + 1).collect()
}

/// Returns true if a block around the last line is a loop of the same function.
fn is_in_loop(lines: &[&str]) -> bool {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut depth = lines.last().map_or(0, |line| indentation(line));
    for line in lines.iter().rev().filter(|line| !line.trim().is_empty()) {
        let code = line.trim_start();
        if indentation(line) < depth {
            depth = indentation(line);
            if is_loop(code) {
                return true;
            }
            if code.split_whitespace().any(|word| word == "fn") {
                return false;
            }
        }
    }
    false
}

fn is_loop(code: &str) -> bool {
    let code = code.split_once(": ").filter(|(label, _)| label.starts_with('\'')).map_or(code, |(_, rest)| rest);
    ["for ", "while ", "loop "].iter().any(|keyword| code.starts_with(keyword)) || code.ends_with("= loop {")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_test_waits_by_yielding_in_a_loop() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut paths = Vec::new();
    sources(&crates, &mut paths);
    sources(&crates.join("../tests"), &mut paths);
    assert!(paths.len() > 500, "only {} sources were found", paths.len());
    let (mut found, mut needed) = (Vec::new(), Vec::new());
    for path in paths.iter().filter(|path| !path.ends_with("xtask/tests/waits.rs")) {
        let name = path.strip_prefix(&crates).unwrap_or(path).to_str().unwrap().replace('\\', "/");
        let lines = yields_in_loops(&fs::read_to_string(path).unwrap());
        if ALLOWED.iter().any(|(allowed, _)| *allowed == name) {
            needed.extend((!lines.is_empty()).then_some(name));
        } else {
            found.extend(lines.into_iter().map(|line| format!("{name}:{line}")));
        }
    }
    assert!(found.is_empty(), "wait for an event instead of yielding in a loop:\n  {}", found.join("\n  "));
    let unneeded: Vec<&str> =
        ALLOWED.iter().map(|(path, _)| *path).filter(|path| !needed.iter().any(|name| name == path)).collect();
    assert!(unneeded.is_empty(), "not needed in ALLOWED any more: {unneeded:?}");
}

#[test]
fn yield_in_loop_is_caught_when_planted() {
    for header in ["for _ in 0..50 {", "while !done {", "loop {", "'outer: loop {", "let a = loop {"] {
        let direct = format!("fn a() {{\n    {header}\n        tokio::task::yield_now().await;\n    }}\n}}\n");
        assert_eq!(yields_in_loops(&direct), [3], "{direct}");
        let nested =
            format!("    {header}\n        match a {{\n            Err(_) => yield_now().await,\n        }}\n    }}\n");
        assert_eq!(yields_in_loops(&nested), [3], "{nested}");
    }
}

#[test]
fn yield_outside_a_loop_is_allowed() {
    let after = "fn a() {\n    for _ in 0..2 {\n        b();\n    }\n    yield_now().await;\n}\n";
    let in_function =
        "fn a() {\n    for _ in 0..2 {\n        async fn b() {\n            yield_now().await;\n        }\n    }\n}\n";
    let comment = "fn a() {\n    loop {\n        // Not by yield_now().\n    }\n}\n";
    for text in [after, in_function, comment] {
        assert_eq!(yields_in_loops(text), [0; 0], "{text}");
    }
}
