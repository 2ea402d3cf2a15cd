//! A cancelled scan ends soon. Work is measured in checks of the flag, not in time.

use super::*;
use crate::system::{CancelFlag, Cancelled};
use crate::usage::RequestLabels;
use FilterAction::{Block, Flag, Redact};

/// The highest number of checks after the cancellation: those of one value under all filters, and of the surrounding
/// scans and loops.
const AFTERWARDS: usize = 20;

fn under_64_patterns(action: FilterAction) -> CompiledFilters {
    let patterns: Vec<String> = (0..64).map(|number| format!("needle{number}")).collect();
    let customs: Vec<_> = patterns.iter().map(|pattern| (pattern.as_str(), action, None)).collect();
    filters(&BuiltinFilter::ALL.map(|slug| (slug, action)), &customs)
}

/// Scans until the flag is cancelled after `passed` checks; returns the total number of checks.
fn checks(filters: &CompiledFilters, provider_input: &Arc<ProviderInput>, passed: usize) -> (bool, usize) {
    let flag = CancelFlag::after_checks(passed);
    let is_cancelled = matches!(filters.apply_until(provider_input, &flag), Err(Cancelled));
    (is_cancelled, flag.checks())
}

#[test]
fn cancelled_scan_ends_early_among_many_values() {
    let values = vec!["\"plain text with needle7 and eve@example.com\""; 2_000].join(",");
    let provider_input = provider_input(&format!("[{values}]"), ASKED);
    for action in [Flag, Redact] {
        let filters = under_64_patterns(action);
        let (is_cancelled, whole) = checks(&filters, &provider_input, usize::MAX);
        assert!(!is_cancelled && whole > 10_000, "{whole}");
        for passed in [0, 1, 100, 5_000] {
            let (is_cancelled, made) = checks(&filters, &provider_input, passed);
            assert!(is_cancelled && made < passed + AFTERWARDS, "{made} checks, cancelled after {passed}");
        }
    }
}

#[test]
fn cancelled_scan_ends_early_within_one_value() {
    let provider_input = provider_input(&format!("\"{}\"", "needle7 needle9 ".repeat(20_000)), ASKED);
    let filters = under_64_patterns(Flag);
    let (is_cancelled, whole) = checks(&filters, &provider_input, usize::MAX);
    assert!(!is_cancelled && whole > 40_000, "each match is a check: {whole}");
    let (is_cancelled, made) = checks(&filters, &provider_input, 500);
    // The remaining matches are skipped pattern by pattern.
    assert!(is_cancelled && made < 500 + 64 + AFTERWARDS, "{made}");
}

#[test]
fn cancelled_scan_never_passes_as_complete() {
    let provider_input = provider_input(r#"["clean","eve@example.com"]"#, ASKED);
    let filters = under_64_patterns(Block);
    let (_, whole) = checks(&filters, &provider_input, usize::MAX);
    for passed in 0..whole {
        assert!(checks(&filters, &provider_input, passed).0, "cancelled after {passed} of {whole} checks");
    }
    let blocked = filters.apply_until(&provider_input, &CancelFlag::default()).unwrap().unwrap_err();
    assert_eq!(blocked.path, "state[1]");
}

#[test]
fn labels_are_left_out_when_their_scan_is_cancelled() {
    let labels = RequestLabels {
        session_id: Some("eve@example.com".to_owned()),
        trace: Json::parse(r#"{"a":"eve@example.com"}"#).ok(),
        user: Some("plain".to_owned()),
    };
    let filters = under_64_patterns(Redact);
    let redacted = filters.redact_labels_until(&labels, &CancelFlag::default());
    assert_eq!((redacted.user.as_deref(), redacted.session_id.as_deref()), (Some("plain"), Some("[EMAIL]")));
    let flag = CancelFlag::after_checks(0);
    assert_eq!(filters.redact_labels_until(&labels, &flag), RequestLabels::default());
}
