//! Redaction of the session, user and trace labels.

use super::*;
use crate::usage::RequestLabels;
use FilterAction::{Block, Flag, Redact};
use rstest::rstest;

fn labels(session_id: &str, user: &str, trace: &str) -> RequestLabels {
    RequestLabels {
        session_id: Some(session_id.to_owned()),
        user: Some(user.to_owned()),
        trace: Some(Json::parse(trace).unwrap()),
    }
}

#[rstest]
#[case(Block)]
#[case(Redact)]
fn labels_are_redacted_when_filters_block_or_redact(#[case] action: FilterAction) {
    let before = labels(
        "s alice@example.com",
        "x@example.com",
        r#"{"team":"y@example.com","a@b.cc":[1],"password":["hunter2"]}"#,
    );
    let after = all(action).redacting().redact_labels(&before);
    assert_eq!(after.session_id.as_deref(), Some("s [EMAIL]"));
    assert_eq!(after.user.as_deref(), Some("[EMAIL]"));
    let trace = r#"{"team":"[EMAIL]","[EMAIL]":[1],"password":["[SECRET]"]}"#;
    assert_eq!(after.trace.as_ref().map(Json::text), Some(trace));
}

#[test]
fn labels_are_unchanged_when_nothing_is_redacted() {
    let flagged = labels("alice@example.com", "u", r#"{ "a" : "x@example.com" }"#);
    assert_eq!(all(Flag).redacting().redact_labels(&flagged), flagged);
    let clean = labels("s", "u", r#"{ "trace_id" : "t", "n":1.50 }"#);
    assert_eq!(all(Block).redacting().redact_labels(&clean), clean);
    assert_eq!(all(Block).redacting().redact_labels(&RequestLabels::default()), RequestLabels::default());
}

#[test]
fn trace_ids_are_left_out_when_they_match() {
    let before = labels("s", "u", r#"{"trace_id":"x@example.com","parent_span_id":"p","name":"y@example.com"}"#);
    let after = all(Block).redacting().redact_labels(&before);
    assert_eq!(after.trace.unwrap().text(), r#"{"parent_span_id":"p","name":"[EMAIL]"}"#);
    let kept = labels("s", "u", r#"{"trace_id":"t","parent_span_id":"y@example.com"}"#);
    assert_eq!(all(Block).redacting().redact_labels(&kept).trace.unwrap().text(), r#"{"trace_id":"t"}"#);
}

#[test]
fn label_is_left_out_when_its_redaction_does_not_terminate() {
    let filters = custom(r"a|\]b", Block, Some("x")).redacting();
    let endless = format!("a{}", "b".repeat(40));
    let after = filters.redact_labels(&labels(&endless, "u", &format!(r#"{{"n":"{endless}"}}"#)));
    assert_eq!(after, RequestLabels { user: Some("u".to_owned()), ..RequestLabels::default() });
}
