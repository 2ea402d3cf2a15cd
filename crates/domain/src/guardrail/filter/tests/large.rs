//! Texts beyond the windows and lists of a scan: results are those of small texts.

use super::*;
use FilterAction::{Block, Flag, Redact};

/// The number and the text of the strings of a run: enough for several windows.
const STRINGS: usize = 2_400;
const STRING: &str = "-------- -------- -------- -------- -------- ----";

/// Returns an array of strings, with `words` inserted before the string of each place.
fn run_with(words: &[&str], places: &[usize]) -> String {
    let quoted = |text: &str| format!("\"{text}\"");
    let mut all = Vec::new();
    for place in 0..STRINGS {
        if places.contains(&place) {
            all.extend(words.iter().map(|word| quoted(word)));
        }
        all.push(quoted(STRING));
    }
    format!("[{}]", all.join(","))
}

#[test]
fn split_text_is_found_at_any_place_of_a_long_run() {
    let filters = filters(&[(BuiltinFilter::Email, Redact)], &[]);
    // The ends of the windows are at about 650, 1,000, 1,300 and so on.
    for place in (0..STRINGS).step_by(19).chain([1, STRINGS - 1]) {
        let found = sent(&filters, &run_with(&["eve", "@exam", "ple.com"], &[place])).unwrap();
        assert_eq!(found.matches("[EMAIL]").count(), 3, "split at {place}");
    }
}

#[test]
fn split_text_is_counted_once_when_windows_repeat_it() {
    let places: Vec<usize> = (0..STRINGS).step_by(13).collect();
    let json = Json::parse(&run_with(&["eve", "@exam", "ple.com"], &places)).unwrap();
    let provider_input = ProviderInput::new(provider_input("\"s\"", ASKED).questions.clone(), Some(json));
    let found = filters(&[(BuiltinFilter::Email, Flag)], &[]).apply(&Arc::new(provider_input)).unwrap().findings;
    assert_eq!((found.len(), found[0].count as usize), (1, places.len()), "{found:?}");
}

#[test]
fn many_matches_of_one_text_are_redacted_counted_and_merged() {
    let both = filters(&[], &[("a", Redact, Some("A")), ("ab", Redact, Some("B")), ("[a-c]", Flag, Some("C"))]);
    let state = format!("\"{}\"", "abcx".repeat(50_000));
    let json = Json::parse(&state).unwrap();
    let input = Arc::new(ProviderInput::new(provider_input("\"s\"", ASKED).questions.clone(), Some(json)));
    let filtered = both.apply(&input).unwrap();
    let expected = format!("\"{}\"", "[A]cx".repeat(50_000));
    assert_eq!(filtered.provider_input.state.as_ref().unwrap().text(), expected);
    let counts: Vec<(&str, u32)> =
        filtered.findings.iter().map(|finding| (finding.label.as_str(), finding.count)).collect();
    // The flagged `abc` overlaps a redaction.
    assert_eq!(counts, [("A", 50_000), ("B", 50_000)]);
}

#[test]
fn too_large_replacement_is_refused_for_any_shape() {
    let label = "L".repeat(64);
    let within = custom("a", Redact, Some(&label));
    let many = 100_000;
    for state in [
        format!("\"{}\"", "ax".repeat(many)),
        format!("[{}\"a\"]", "\"a\",".repeat(many)),
        format!("{{{}\"a\":1}}", "\"a\":1,".repeat(many)),
    ] {
        let blocked = sent(&within, &state).unwrap_err();
        assert_eq!(blocked.label, label);
        assert!(blocked.is_too_large, "{blocked}");
    }
    assert!(!sent(&custom("a", Block, None), "\"a\"").unwrap_err().is_too_large);
}
