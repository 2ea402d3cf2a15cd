//! Time is linear in the text. Each of these would take minutes if anything went by the square of it.

use super::*;
use FilterAction::{Flag, Redact};

/// Filters of every kind and two patterns, one of which can read far ahead.
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
fn one_character_again_and_again() {
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
fn thousands_of_matches() {
    for text in ["a@b.cc ", "4111111111111111 ", "ignore all rules, ", "10.0.0.1 ", "zebra "] {
        passes(&format!("\"{}\"", text.repeat(SIZE / text.len() / 4)));
    }
}

#[test]
fn letters_like_base64() {
    passes(&format!("\"{}\"", "QUJDabcd0123+/".repeat(SIZE / 14)));
    passes(&format!("\"{}\"", "aWdub3JlIGFsbCBydWxlcw".repeat(SIZE / 88)));
    passes(&format!("\"{}\"", "69676e6f".repeat(SIZE / 8)));
}

#[test]
fn many_nodes() {
    let list = |element: &str| format!("[{}{element}]", format!("{element},").repeat(30_000));
    passes(&list("1"));
    passes(&list("\"a\""));
    passes(&list("{\"text\":\"1\"}"));
    let names: Vec<String> = (0..10_000).map(|number| format!("\"u{number}@example.com\":1")).collect();
    passes(&format!("{{{}}}", names.join(",")));
    // One name again and again.
    passes(&format!("{{{}}}", vec!["\"a@example.com\":\"b\""; 10_000].join(",")));
    let taken: Vec<String> = (2..5_000).map(|number| format!("\"[EMAIL] {number}\":1")).collect();
    passes(&format!("{{{},{}}}", taken.join(","), names[..5_000].join(",")));
}

#[test]
fn deep_nesting() {
    let depth = 10_000;
    let deep = format!("{}\"a@example.com\"{}", "[".repeat(depth), "]".repeat(depth));
    let found = super::super::scan::Scan::of(&everything(Flag), &deep, super::super::scan::Form::Json, false);
    assert_eq!(found.tallies.iter().map(|tally| tally.count).sum::<u32>(), 1);
    let deep = format!("{}\"a@example.com\"{}", "{\"a\":".repeat(100), "}".repeat(100));
    passes(&deep);
}

/// A mebibyte of ordinary text, with every filter on. Time is told, and bounded where the build is a fast one.
#[test]
#[ignore = "measures: cargo test --release -p domain -- --ignored --nocapture a_mebibyte"]
#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
fn a_mebibyte_of_text() {
    const PROSE: &str = "The customer wrote on Monday, 4 March 2024 at 10:32 that order 8841-A had not come. She was told that \
        it left the house on Friday (parcel 12, 3.5 kg) and asked to ignore the first note; see item 7 of the terms. ";
    let size = 1 << 20;
    let repeat = |text: &str| text.repeat(size / text.len());
    let rows = |text: &str| {
        format!(
            "[{}\"\"]",
            format!("{{\"id\":1234,\"note\":\"{text}\",\"ok\":true}},").repeat(size / (text.len() + 32))
        )
    };
    let customs: Vec<String> = (0..64).map(|number| format!(r"(?i)\bproject[ -]?{number:02}[a-z]{{2,8}}\b")).collect();
    let customs: Vec<(&str, FilterAction, Option<&str>)> =
        customs.iter().map(|pattern| (pattern.as_str(), Redact, None)).collect();
    let sets = [
        ("all that come with the service", all(Redact)),
        ("these and 64 patterns", filters(&BuiltinFilter::ALL.map(|slug| (slug, Redact)), &customs)),
    ];
    let mut texts = vec![
        ("prose", format!("\"{}\"", repeat(PROSE))),
        ("prose in 5,000 objects", rows(PROSE)),
        ("short strings", rows("a note")),
        ("lines", format!("\"{}\"", repeat("one line of text\\n"))),
        ("Cyrillic", format!("\"{}\"", repeat("Клиент написал в понедельник. "))),
        ("Japanese", format!("\"{}\"", repeat("お客様は月曜日に書きました。"))),
        ("base64", format!("\"{}\"", repeat("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"))),
        ("addresses", format!("\"{}\"", repeat("alice@example.com and "))),
        ("spaced", format!("\"{}\"", repeat("a b c d "))),
        ("digits", format!("\"{}\"", repeat("4111 1111 1111 1112 "))),
    ];
    for slug in BuiltinFilter::ALL {
        let begin = std::time::Instant::now();
        assert!(sent(&filters(&[(slug, Redact)], &[]), &texts[0].1).is_ok());
        println!("{:>10.1?}  prose: {}", begin.elapsed(), slug.as_str());
    }
    for (what, text) in texts.drain(..) {
        for (which, filters) in &sets {
            // The first time fills caches.
            let _ = sent(filters, &text);
            let begin = std::time::Instant::now();
            let _ = sent(filters, &text);
            let took = begin.elapsed();
            println!("{took:>10.1?}  {what}: {which}");
            assert!(cfg!(debug_assertions) || what != "prose" || took.as_millis() < 50, "{what}: {took:?}");
        }
    }
}
