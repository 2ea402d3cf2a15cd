use super::*;
use crate::ids::DecisionId;
use crate::json::Json;
use crate::testing::SequentialIds;

const PLAIN: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn parse(trace: &str) -> TraceMetadata {
    TraceMetadata::parse(Some(&Json::parse(trace).unwrap()))
}

fn trace_id(trace: &str) -> String {
    parse(trace).trace_id(&DecisionId::from_uuid(SequentialIds::uuid(7)))
}

#[test]
fn trace_id_is_the_name_or_its_hash() {
    assert_eq!(trace_id(&format!(r#"{{"trace_id":"{}"}}"#, PLAIN.to_uppercase())), PLAIN);
    // The beginning of the SHA-256 of `abc`.
    assert_eq!(trace_id(r#"{"trace_id":"abc"}"#), "ba7816bf8f01cfea414140de5dae2223");
    assert_ne!(trace_id(&format!(r#"{{"trace_id":"{}"}}"#, "0".repeat(32))), "0".repeat(32), "zeros are no id");
    assert_eq!(trace_id(r#"{"trace_id":null}"#), trace_id("{}"), "that of the request");
}

#[test]
fn parent_span_id_exists_when_caller_names_one() {
    assert_eq!(parse(r#"{"parent_span_id":"00F067AA0BA902B7"}"#).parent_span_id().unwrap(), "00f067aa0ba902b7");
    assert_eq!(parse(r#"{"parent_span_id":"abc"}"#).parent_span_id().unwrap(), "ba7816bf8f01cfea");
    assert_eq!(parse("{}").parent_span_id(), None);
    assert_eq!(TraceMetadata::parse(None), TraceMetadata::default());
}

#[test]
fn metadata_is_bounded_and_last_duplicate_wins() {
    let members: Vec<String> = (0..65).map(|n| format!(r#""k{n}":{n}"#)).collect();
    let whole = parse(&format!("{{{}}}", members[..64].join(",")));
    assert_eq!((whole.others.len(), whole.is_truncated), (64, false));
    let cut = parse(&format!("{{{}}}", members.join(",")));
    assert_eq!((cut.others.len(), cut.is_truncated), (64, true));
    let twice = parse(r#"{"a":1,"a":"two","trace_name":"x","trace_name":"y"}"#);
    assert_eq!(twice.others, [("a".to_owned(), Json::string("two"))]);
    assert_eq!(twice.trace_name.as_deref(), Some("y"));
    let long = parse(&format!(r#"{{"span_name":"{}"}}"#, "é".repeat(200)));
    assert_eq!(long.span_name.unwrap(), "é".repeat(128));
}
