use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn one(code: &str) -> String {
    format!(r#"{{"success":false,"errors":[{{"code":{code},"message":"private"}}],"messages":[],"result":null}}"#)
}

fn kind(status: u16, body: &str) -> Option<AttemptFailureKind> {
    workers_ai(status, body.as_bytes()).map(|meaning| meaning.kind)
}

#[rstest]
#[case(401, "10000", Some(AttemptFailureKind::ProviderAuthFailed))]
#[case(400, "7000", Some(AttemptFailureKind::HttpError))]
#[case(429, "3040", Some(AttemptFailureKind::Overloaded))]
#[case(429, "4006", Some(AttemptFailureKind::ProviderAuthFailed))]
#[case::told_by_the_status(400, "5006", None)]
#[case::told_by_the_status(413, "5021", None)]
#[case::told_by_the_status(422, "5012", None)]
#[case::told_by_the_status(529, "5012", None)]
#[case::as_a_200(200, "5006", Some(AttemptFailureKind::RejectedByProvider))]
#[case::as_a_200(200, "5012", Some(AttemptFailureKind::InvalidResponse))]
#[case::as_a_200(200, "\"odd\"", Some(AttemptFailureKind::InvalidResponse))]
fn workers_ai_maps_error_codes(#[case] status: u16, #[case] code: &str, #[case] expected: Option<AttemptFailureKind>) {
    assert_eq!(kind(status, &one(code)), expected);
}

#[test]
fn workers_ai_reads_used_up_allowance_as_trouble_with_account() {
    let cause = |code: &str| workers_ai(429, one(code).as_bytes()).unwrap().cause;
    assert_eq!(cause("4006"), Some(FailureCause::AccountExhausted));
    assert_eq!(cause("3040"), None);
}

#[test]
fn workers_ai_reads_error_nested_in_message() {
    let inner = one("4006").replace('"', "\\\"");
    let body = format!(r#"{{"success":false,"errors":[{{"code":9999,"message":"AiError: {inner} "}}]}}"#);
    let meaning = workers_ai(429, body.as_bytes()).unwrap();
    assert_eq!(meaning.cause, Some(FailureCause::AccountExhausted));
    assert!(!meaning.detail.contains("private"));
}

#[rstest]
#[case("")]
#[case("<html>")]
#[case("[]")]
#[case("{}")]
#[case(r#"{"errors":{}}"#)]
#[case(r#"{"errors":[1,"x",{"code":null}],"success":true}"#)]
fn workers_ai_ignores_other_bodies(#[case] body: &str) {
    for status in [200, 400, 429, 529] {
        assert_eq!(kind(status, body), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = workers_ai(200, &body);
    }

    #[test]
    fn any_near_error_is_read_without_panic(
        body in r#"(\{|\}|\[|\]|"errors"|"code"|"message"|"\{\}"|:|,|4006|1e400|"|\\|null|false| ){0,40}"#,
    ) {
        let _ = workers_ai(429, body.as_bytes());
    }
}
