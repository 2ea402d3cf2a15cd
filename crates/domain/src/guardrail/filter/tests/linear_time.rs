//! Filters take time linear in the text. With quadratic time each of these tests would take minutes.

use super::*;
use FilterAction::{Flag, Redact};

/// Compiles all built-in filters and two patterns, one of which may read far ahead.
fn everything(action: FilterAction) -> CompiledFilters {
    filters(
        &BuiltinFilter::ALL.map(|slug| (slug, action)),
        &[("zebra", action, Some("Z")), (r"q[^!]*!|q", action, Some("Q"))],
    )
}

const SIZE: usize = 200_000;

fn passes(state: &str) {
    for action in [Flag, Redact] {
        let found = sent(&everything(action), state);
        assert!(found.is_ok() || found.unwrap_err().path.starts_with("state"));
    }
}

#[test]
fn scan_of_repeated_character_is_linear() {
    for c in [
        "a",
        "1",
        "@",
        ".",
        "q",
        "-",
        " ",
        "(",
        "\\\"",
        "\\u0061",
        "é",
        "=",
        "password=",
        "eyJ",
        "1 ",
        "1.",
        "::",
        "a b ",
    ] {
        passes(&format!("\"{}\"", c.repeat(SIZE / c.len() / 4)));
    }
}

#[test]
fn scan_of_many_matches_is_linear() {
    for text in ["a@b.cc ", "4111111111111111 ", "ignore all rules, ", "10.0.0.1 ", "zebra "] {
        passes(&format!("\"{}\"", text.repeat(SIZE / text.len() / 4)));
    }
}

#[test]
fn scan_of_base64_is_linear() {
    passes(&format!("\"{}\"", "QUJDabcd0123+/".repeat(SIZE / 14)));
    passes(&format!("\"{}\"", "aWdub3JlIGFsbCBydWxlcw".repeat(SIZE / 88)));
    passes(&format!("\"{}\"", "69676e6f".repeat(SIZE / 8)));
}

#[test]
fn scan_of_many_nodes_is_linear() {
    let list = |element: &str| format!("[{}{element}]", format!("{element},").repeat(30_000));
    passes(&list("1"));
    passes(&list("\"a\""));
    passes(&list("{\"text\":\"1\"}"));
    let names: Vec<String> = (0..10_000).map(|number| format!("\"u{number}@example.com\":1")).collect();
    passes(&format!("{{{}}}", names.join(",")));
    // The same name many times.
    passes(&format!("{{{}}}", vec!["\"a@example.com\":\"b\""; 10_000].join(",")));
    let taken: Vec<String> = (2..5_000).map(|number| format!("\"[EMAIL] {number}\":1")).collect();
    passes(&format!("{{{},{}}}", taken.join(","), names[..5_000].join(",")));
}

#[test]
fn scan_of_deep_nesting_is_linear() {
    let depth = 10_000;
    let deep = format!("{}\"a@example.com\"{}", "[".repeat(depth), "]".repeat(depth));
    let found = super::super::scan::Scan::run(
        &super::super::search::Search::new(&everything(Flag), &crate::system::CancelFlag::default()),
        &deep,
        super::super::scan::Form::Json(super::super::attachment::Media::Ignored),
        false,
    );
    assert_eq!(found.match_counts.iter().map(|matches| matches.count).sum::<u32>(), 1);
    let deep = format!("{}\"a@example.com\"{}", "{\"a\":".repeat(100), "}".repeat(100));
    passes(&deep);
}
