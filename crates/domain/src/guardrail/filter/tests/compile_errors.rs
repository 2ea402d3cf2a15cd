//! Filters that cannot be compiled.

use super::*;
use FilterAction::Block;

fn refused(rules: &GuardrailRules) -> (String, String) {
    let invalid = CompiledFilters::compile([(id(1), rules)].into_iter()).unwrap_err();
    (invalid.path, invalid.fault)
}

fn patterns(count: usize, pattern: &str) -> GuardrailRules {
    rules(&[], &vec![(pattern, Block, None); count])
}

#[test]
fn compile_error_has_path_of_pattern() {
    let rules = rules(&[], &[("a", Block, None), ("b(?=c)", Block, None)]);
    let (path, fault) = refused(&rules);
    assert_eq!(path, "content_filters[1].pattern");
    assert_eq!(fault, "uses look-around, which cannot be matched in linear time; write the pattern without it");
}

#[test]
fn compile_rejects_too_many_patterns() {
    assert!(CompiledFilters::compile([(id(1), &patterns(64, "a"))].into_iter()).is_ok());
    let expected = ("content_filters".to_owned(), "must have at most 64 patterns, not 65".to_owned());
    assert_eq!(refused(&patterns(65, "a")), expected);
}

#[test]
fn compile_counts_patterns_per_guardrail() {
    let many = patterns(64, "a");
    assert!(CompiledFilters::compile([(id(1), &many), (id(2), &many)].into_iter()).is_ok());
}

#[test]
fn compile_rejects_patterns_too_large_together() {
    // Each is within the bound of one.
    let large = patterns(64, r"\w{14}");
    assert!(CompiledFilters::compile([(id(1), &patterns(1, r"\w{14}"))].into_iter()).is_ok());
    let (path, fault) = refused(&large);
    assert_eq!(path, "content_filters");
    assert_eq!(fault, "take more than 8 MiB when compiled together; use fewer or simpler ones");
}

#[test]
fn compile_rejects_long_label() {
    let label = "é".repeat(100);
    assert!(CompiledFilters::compile([(id(1), &rules(&[], &[("a", Block, Some(&label))]))].into_iter()).is_ok());
    let label = "é".repeat(101);
    let (path, fault) = refused(&rules(&[], &[("a", Block, Some(&label))]));
    assert_eq!((path.as_str(), fault.as_str()), ("content_filters[0].label", "must have at most 100 characters"));
}

#[test]
fn compile_accepts_all_builtins() {
    for action in FilterAction::ALL {
        assert_eq!(all(action).filters.len(), BuiltinFilter::ALL.len());
    }
}
