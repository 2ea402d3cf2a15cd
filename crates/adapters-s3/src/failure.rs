//! Failures of the object store, described without secrets and in bounded length.

use domain::error::StoreError;
use object_store::Error;

/// The longest description, in characters.
const MAX_CHARS: usize = 300;

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[error("the object store failed to {action}: {reason}")]
pub(crate) struct Failure {
    action: &'static str,
    reason: String,
}

/// The result of a check of the bucket.
#[derive(Debug)]
pub enum BucketCheck {
    /// The bucket answers.
    Accessible,
    /// The bucket does not exist; the text names the answer and the remedy.
    Missing(String),
    /// The service rejects the configuration; the text names the answer and the cause to look for.
    Rejected(String),
    /// The service cannot be reached, or fails.
    Unavailable(StoreError),
}

pub(crate) fn unavailable(action: &'static str, error: &Error) -> StoreError {
    StoreError::unavailable(Failure { action, reason: describe(error) })
}

/// Returns true if the service says that the named object, or the bucket, does not exist.
pub(crate) fn says_absent(error: &Error) -> bool {
    matches!(error, Error::NotFound { .. })
}

/// Tells an answer that only a change of the configuration or of the bucket can change from an outage.
pub(crate) fn of_check(error: &Error) -> BucketCheck {
    let text = error.to_string();
    let advice = match error {
        _ if text.contains("NoSuchBucket") => {
            let advice = "create the bucket, or correct blobs.url; `tollgate migrate up --create-bucket` creates it";
            return BucketCheck::Missing(format!("{}; {advice}", describe(error)));
        }
        Error::NotFound { .. } => "correct blobs.url, blobs.endpoint or blobs.path_style",
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "correct the credentials, the bucket's policy or this machine's clock"
        }
        _ if text.contains("status code: 401") || text.contains("status code: 403") => "correct the credentials",
        _ if text.contains("Failed to read") => "correct the file of the credentials",
        _ if text.contains("redirect") || text.contains("status code: 301") => "correct blobs.region or blobs.endpoint",
        _ if text.contains("status code: 400") => "correct blobs.region, blobs.endpoint or the credentials",
        _ => return BucketCheck::Unavailable(unavailable("list objects", error)),
    };
    BucketCheck::Rejected(format!("{}; {advice}", describe(error)))
}

/// Describes an answer that is an error.
pub(crate) fn describe_answer(status: http::StatusCode, body: &str) -> String {
    describe_text(format!("non-2xx status code: {status}: {body}"))
}

/// Describes an error: the service's code and message, or the cause on the way to it.
pub(crate) fn describe(error: &Error) -> String {
    describe_text(error.to_string())
}

fn describe_text(text: String) -> String {
    let reason = match (status(&text), between(&text, "<Code>", "</Code>")) {
        (Some(status), Some(code)) => {
            let message = between(&text, "<Message>", "</Message>").unwrap_or_default();
            format!("{status} {code}: {message}")
        }
        (Some(status), None) => format!("status {status}"),
        (None, _) => match text.rsplit_once("HTTP error: ") {
            Some((_, cause)) => cause.to_owned(),
            None => text,
        },
    };
    reason.trim_end_matches([':', ' ']).chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect()
}

fn status(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("non-2xx status code: ")?;
    rest.get(..3).filter(|status| status.bytes().all(|byte| byte.is_ascii_digit()))
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn describe_returns_code_and_message_only() {
        let answer = generic(
            "Error performing GET http://host/bucket?x in 3ms - Server returned non-2xx status code: 403 Forbidden: \
             <Error><Code>AccessDenied</Code><Message>Access\n Denied</Message><AWSAccessKeyId>AKIA</AWSAccessKeyId>\
             </Error>",
        );
        assert_eq!(describe(&answer), "403 AccessDenied: Access Denied");
        let bare = generic("Server returned non-2xx status code: 503 Service Unavailable: <html>…</html>");
        assert_eq!(describe(&bare), "status 503");
        let call =
            generic("Error performing GET http://h/b in 3ms, after 2 retries - HTTP error: cannot connect: refused");
        assert_eq!(describe(&call), "cannot connect: refused");
        assert_eq!(describe(&generic(&"x".repeat(1_000))).chars().count(), MAX_CHARS);
    }

    #[test]
    fn of_check_tells_rejections_from_outages() {
        let is_rejected = |error: &Error| matches!(of_check(error), BucketCheck::Rejected(_));
        let missing = Error::NotFound { path: "p".to_owned(), source: "<Code>NoSuchBucket</Code>".to_owned().into() };
        let BucketCheck::Missing(text) = of_check(&missing) else { panic!("{missing}") };
        assert!(text.contains("--create-bucket"), "{text}");
        let denied = "<Code>AccessDenied</Code>".to_owned().into();
        assert!(is_rejected(&Error::PermissionDenied { path: "p".to_owned(), source: denied }));
        assert!(is_rejected(&generic("Received redirect without LOCATION")));
        assert!(is_rejected(&generic("non-2xx status code: 403 Forbidden: <Code>AccessDenied</Code>")));
        assert!(is_rejected(&generic("Failed to read token file '/x': No such file or directory")));
        assert!(!is_rejected(&generic("HTTP error: cannot connect: refused")));
        assert!(!is_rejected(&generic("non-2xx status code: 503 Service Unavailable: ")));
    }
}
