//! Block, redact and flag; several filters at the same position; several guardrails.

use super::*;
use FilterAction::{Block, Flag, Redact};

fn findings(filters: &CompiledFilters, state: &str) -> Vec<(String, FilterAction, String, u32)> {
    let filtered = filters.apply(&provider_input(state, ASKED)).unwrap();
    filtered.findings.into_iter().map(|found| (found.label, found.action, found.path, found.count)).collect()
}

fn finding(label: &str, action: FilterAction, path: &str, count: u32) -> (String, FilterAction, String, u32) {
    (label.to_owned(), action, path.to_owned(), count)
}

#[test]
fn block_reports_first_match_without_its_text() {
    let filters =
        filters(&[(BuiltinFilter::Email, Block), (BuiltinFilter::Ssn, Redact)], &[("zebra", Block, Some("Animals"))]);
    let state = r#"{"a":"123-45-6789","b":[{},{"c":"a zebra"},{"c":"x@example.com"}]}"#;
    let blocked = sent(&filters, state).unwrap_err();
    assert_eq!((blocked.guardrail_id, &*blocked.label, &*blocked.path), (id(1), "Animals", "state.b[1].c"));
    assert_eq!(blocked.to_string(), "Request blocked by content filter: [Animals]");
    let blocked = sent(&filters, r#"["x@example.com and a zebra"]"#).unwrap_err();
    assert_eq!((blocked.label.as_str(), blocked.path.as_str()), ("EMAIL", "state[0]"));
}

#[test]
fn path_replaces_matched_names_by_index() {
    let filters = all(Block);
    let path = |state: &str| sent(&filters, state).unwrap_err().path;
    assert_eq!(path(r#"{"x@example.com":1}"#), "state (key)");
    assert_eq!(path(r#"{"a":[{"x@example.com":1}]}"#), "state.a[0] (key)");
    let flags = all(Flag);
    let both = [BuiltinFilter::Email, BuiltinFilter::Ssn].map(|slug| (slug, Flag));
    assert_eq!(
        findings(&super::filters(&both, &[]), r#"{"b":0,"x@example.com":{"c":"123-45-6789"}}"#),
        [finding("EMAIL", Flag, "state (key)", 1), finding("SSN", Flag, "state.(key 2).c", 1),]
    );
    // A name without a built-in match can match a pattern.
    let plain = super::filters(&[(BuiltinFilter::Ssn, Flag)], &[("zebra", Flag, None)]);
    assert_eq!(findings(&plain, r#"{"zebra":"123-45-6789"}"#)[1], finding("SSN", Flag, "state.(key 1)", 1));
    assert!(findings(&flags, r#"{"b":"c"}"#).is_empty());
}

#[test]
fn block_reports_state_before_questions() {
    let filters = all(Block);
    let blocked = |state: &str, questions: &str| filters.apply(&provider_input(state, questions)).unwrap_err().path;
    let question = r#"{"tone":{"type":"noul","criteria":{"true":"x@example.com"}}}"#;
    assert_eq!(blocked(r#""y@example.com""#, question), "state");
    assert_eq!(blocked(r#""clean""#, question), "questions.tone.criteria.true");
}

#[test]
fn flag_keeps_text_and_counts_matches() {
    let filters = filters(&[(BuiltinFilter::Email, Flag)], &[("[0-9]+", Flag, Some("Digits"))]);
    let state = r#"{"a":"1 and 2","b":["x@example.com",3]}"#;
    assert_eq!(sent(&filters, state).unwrap(), state);
    assert_eq!(
        findings(&filters, state),
        [finding("Digits", Flag, "state.a", 3), finding("EMAIL", Flag, "state.b[0]", 1)]
    );
    assert_eq!(filters.apply(&provider_input(state, ASKED)).unwrap().findings[0].guardrail_id, id(1));
}

#[test]
fn apply_returns_same_input_without_matches() {
    let clean = provider_input(r#"{"a":"nothing here"}"#, ASKED);
    for action in FilterAction::ALL {
        let filtered = all(action).apply(&clean).unwrap();
        assert!(Arc::ptr_eq(&clean, &filtered.provider_input));
        assert!(filtered.aliases.is_empty() && filtered.findings.is_empty());
    }
    let none = CompiledFilters::compile(std::iter::empty()).unwrap();
    assert!(none.is_empty());
    assert!(Arc::ptr_eq(&clean, &none.apply(&clean).unwrap().provider_input));
}

#[test]
fn redaction_takes_precedence_over_flag() {
    let filters = filters(&[(BuiltinFilter::Email, Redact)], &[("example", Flag, Some("Word"))]);
    assert_eq!(findings(&filters, r#""x@example.com""#), [finding("EMAIL", Redact, "state", 1)]);
    assert_eq!(
        findings(&filters, r#"["x@example.com","example"]"#),
        [finding("Word", Flag, "state[1]", 1), finding("EMAIL", Redact, "state[0]", 1)]
    );
}

#[test]
fn overlapping_redactions_are_merged() {
    let filters =
        filters(&[(BuiltinFilter::Email, Redact)], &[("to x@ex", Redact, Some("A")), ("com now", Redact, Some("B"))]);
    assert_eq!(sent(&filters, r#""mail to x@example.com now!""#).unwrap(), r#""mail [A]!""#);
}

#[test]
fn adjacent_redactions_of_one_filter_are_merged() {
    let one = custom("ab|cd", Redact, Some("A"));
    assert_eq!(sent(&one, r#""xabcdx""#).unwrap(), r#""x[A]x""#);
    let two = filters(&[], &[("ab", Redact, Some("A")), ("cd", Redact, Some("B"))]);
    assert_eq!(sent(&two, r#""xabcdx""#).unwrap(), r#""x[A][B]x""#);
    assert_eq!(sent(&two, r#""xcdabx""#).unwrap(), r#""x[B][A]x""#);
    // Redacted names stay distinct, and none is lost.
    assert_eq!(sent(&two, r#"{"ab":"cd","cd":"ab"}"#).unwrap(), r#"{"[A]":"[B]","[B]":"[A]"}"#);
}

#[test]
fn filters_of_several_guardrails_are_merged() {
    let workspace = rules(&[(BuiltinFilter::Email, Redact), (BuiltinFilter::Ssn, Block)], &[("a+", Flag, Some("A"))]);
    let key = rules(&[(BuiltinFilter::Email, Block), (BuiltinFilter::Ssn, Flag)], &[("zebra", Redact, Some("Z"))]);
    let filters = CompiledFilters::compile([(id(1), &workspace), (id(2), &key)].into_iter()).unwrap();
    let blocked = |state: &str| sent(&filters, state).unwrap_err();
    assert_eq!((blocked(r#""x@example.com""#).guardrail_id, blocked(r#""123-45-6789""#).guardrail_id), (id(2), id(1)));
    assert_eq!(sent(&filters, r#""aa zebr zebra""#).unwrap(), r#""aa zebr [Z]""#);
    let found = filters.apply(&provider_input(r#""aa zebr zebra""#, ASKED)).unwrap().findings;
    assert_eq!((found[0].guardrail_id, found[1].guardrail_id), (id(1), id(2)));
    // The last letter of the other word is already redacted.
    assert_eq!((found[0].count, found[1].count), (1, 1));
}

#[test]
fn redaction_replaces_match_by_label() {
    let redacted = |label: Option<&str>| sent(&custom("zebra", Redact, label), r#"{"a":"a zebra\n"}"#).unwrap();
    assert_eq!(redacted(Some("Animals")), r#"{"a":"a [Animals]\n"}"#);
    assert_eq!(redacted(None), r#"{"a":"a [REDACTED]\n"}"#);
    assert_eq!(redacted(Some("\",\"b\":\"\\")), r#"{"a":"a [_b_]\n"}"#);
}

#[test]
fn patterns_match_plain_and_normalized_text() {
    let filters = custom("zebra|é+", Redact, Some("X"));
    let redacted = |state: &str| sent(&filters, state).unwrap();
    assert_eq!(redacted(r#""z\u0065bra zеbra ｚｅｂｒａ z\u200bebra éé""#), r#""[X] [X] [X] [X] [X]""#);
    assert_eq!(redacted(r#""Zebra zébra""#), r#""Zebra [X]""#);
}

#[test]
fn redaction_ignores_matches_in_own_placeholder() {
    for (pattern, label, state, expected) in [
        ("[A-Z]+", "X", r#""ABC d EF""#, r#""[X] d [X]""#),
        (".+", "A 1", r#"["one","two"]"#, r#"["[A 1]","[A 1]"]"#),
        (r"\d+", "N1", r#"{"7":1,"8":"a9"}"#, r#"{"[N1]":"[N1]","[N1] 2":"a[N1]"}"#),
        (r".{5}", "X", r#""hellohi""#, r#""[X]""#),
    ] {
        let filters = custom(pattern, Redact, Some(label));
        let once = sent(&filters, state).unwrap();
        assert_eq!(once, expected, "{pattern}");
        assert_eq!(sent(&filters, &once).unwrap(), once, "{pattern}");
    }
    // A number after the placeholder belongs to it only in names, and only up to the number of members.
    let digits = custom(r"\d", Redact, Some("N"));
    assert_eq!(sent(&digits, r#"{"[N] 2":"[N] 2","[N]":""}"#).unwrap(), r#"{"[N] 2":"[N] [N]","[N]":""}"#);
    // Only filters that redact exempt placeholders.
    assert!(sent(&custom("secret", Block, Some("secret")), r#""[secret]""#).is_err());
}

#[test]
fn redaction_blocks_when_it_does_not_terminate() {
    // The placeholder of one match and the next letter form another match.
    let filters = custom(r"a|\]b", Redact, Some("x"));
    assert_eq!(sent(&filters, r#""abbb""#).unwrap(), r#""[x[x[x[x]""#);
    let blocked = sent(&filters, r#""abbbbbbbbbbbbbbbbbbbbbbbb""#).unwrap_err();
    assert_eq!((blocked.label.as_str(), blocked.path.as_str()), ("x", "state"));
}

#[test]
fn redaction_blocks_when_text_grows_too_large() {
    let filters = custom(r"\d", Redact, Some(&"x".repeat(100)));
    let many = format!("[{}1]", "1,".repeat(200_000));
    assert_eq!(sent(&filters, &many).unwrap_err().path, "state[0]");
    let few = format!("[{}1]", "1,".repeat(2_000));
    assert!(sent(&filters, &few).is_ok());
}
