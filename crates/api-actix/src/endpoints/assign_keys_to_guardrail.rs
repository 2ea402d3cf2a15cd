//! `POST /guardrails/{id}/assignments/keys`: assigns many keys to one guardrail.

use std::borrow::Cow;

use domain::guardrail::AssignKeysError;
use domain::json::{Token, Tokens};
use wires::client::read_members;

use crate::endpoints::prelude::*;
use crate::http::operation;

pub(crate) const ROUTE: Route =
    Route::management(Post, "/guardrails/{id}/assignments/keys", tags::GUARDRAILS, handler!(handle, payload))
        .operation("assignKeysToGuardrail", "Bulk assign keys to a guardrail")
        .description(
            "A key has at most one guardrail: an assignment replaces the previous one. Needs a management key. Keys \
             are named by hash or id. Names that match no key of the guardrail's workspace are skipped and not \
             counted.",
        )
        .body(BodySchema::of::<AssignKeysRequest>)
        .headers(&[IF_MATCH, IDEMPOTENCY_KEY])
        .answer(BodySchema::of::<AssignedView>, "The number of assigned keys")
        .complete(|operation| operation.body(BodySchema::of::<AssignKeysRequest>(), Some(operation::assignment())));

api_error!(AssignKeysError {
    pass: Restricted, Name, PreconditionFailed, Store;
    said: NoHashes, EmptyHash;
});

/// The keys to assign.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a body that `key_hashes` reads without a copy")]
pub(super) struct AssignKeysRequest {
    /// The keys, by hash (64 lower-case hex digits) or id (UUID). Unknown keys are skipped; a repeated key counts once.
    #[schema(min_items = 1)]
    key_hashes: Vec<KeyHash>,
}

/// The hash or the id of a key.
#[derive(ToSchema)]
#[schema(min_length = 1)]
#[expect(dead_code, reason = "the schema of an element of `AssignKeysRequest`")]
struct KeyHash(String);

/// The number of assigned keys.
#[derive(Serialize, ToSchema)]
#[schema(as = AssignKeysResponse)]
struct AssignedView {
    assigned_count: u64,
}

async fn handle(call: &Call<'_>, by: &Authority, payload: Payload) -> Outcome {
    let body = call.read_json(payload).await?;
    let hashes = key_hashes(body.text()?)?;
    let (assign, id) = (&call.gateway.services.assign_keys, call.id()?);
    let execute = async |change: &Change<'_, u64>| assign.execute(change, &id, hashes).await;
    let render =
        |assigned_count: &u64| RecordResponse::json(StatusCode::OK, &AssignedView { assigned_count: *assigned_count });
    call.post(by, body.text()?, execute, render).await
}

/// Returns the strings of `key_hashes`, one after the other: a list takes many times the memory of short ones.
pub(super) fn key_hashes(text: &str) -> Result<impl Iterator<Item = Cow<'_, str>>, ApiError> {
    let [hashes] = read_members(text, &["key_hashes"])?;
    let hashes = hashes.ok_or_else(|| ApiError::invalid("key_hashes is required"))?.get();
    if !hashes.starts_with('[') {
        return Err(ApiError::invalid("key_hashes must be an array of strings"));
    }
    let elements = || Tokens::new(hashes).skip(1).filter(|(token, _)| *token != Token::Comma);
    let first_other = elements().position(|(token, _)| token != Token::String).unwrap_or_default();
    if elements().nth(first_other).is_some_and(|(token, _)| token != Token::Close) {
        return Err(ApiError::invalid(format!("key_hashes[{first_other}] must be a string")));
    }
    let strings = elements().filter(|(token, _)| *token == Token::String);
    Ok(strings.map(|(_, quoted)| decode(&hashes[quoted])))
}

/// Returns the content of a JSON string, whose syntax is already checked.
fn decode(quoted: &str) -> Cow<'_, str> {
    let content = quoted.trim_matches('"');
    if content.contains('\\') {
        Cow::Owned(serde_json::from_str(quoted).unwrap_or_default())
    } else {
        Cow::Borrowed(content)
    }
}

#[cfg(test)]
mod tests {
    use domain::naming::NameError;

    use super::*;

    fn read(text: &str) -> Result<Vec<Cow<'_, str>>, String> {
        key_hashes(text).map(Iterator::collect).map_err(|error| error.text().to_owned())
    }

    #[test]
    fn key_hashes_borrows_strings_without_escapes() {
        let hashes = read(r#"{"key_hashes":["ab","\u0063"],"x":[1]}"#).unwrap();
        assert_eq!(hashes, ["ab", "c"]);
        assert!(matches!(hashes[0], Cow::Borrowed(_)));
        assert!(read(r#"{"key_hashes":[]}"#).unwrap().is_empty());
    }

    #[test]
    fn key_hashes_rejects_other_shapes_with_path() {
        for other in ["null", "1", "1.5", "-1", "true", "[\"a\"]", "{\"a\":[1]}"] {
            let body = format!(r#"{{"key_hashes":["a","b",{other},7]}}"#);
            assert_eq!(read(&body).unwrap_err(), "key_hashes[2] must be a string", "{other}");
        }
        assert_eq!(read("{}").unwrap_err(), "key_hashes is required");
        assert_eq!(read(r#"{"key_hashes":null}"#).unwrap_err(), "key_hashes is required");
        for other in [r#""a""#, "{}", "1"] {
            let body = format!(r#"{{"key_hashes":{other}}}"#);
            assert_eq!(read(&body).unwrap_err(), "key_hashes must be an array of strings");
        }
        assert!(read(r#"{"key_hashes":["a"],"key_hashes":["b"]}"#).unwrap_err().contains("more than once"));
        assert_eq!(read(r#"{"key_hashes":[1e999]}"#).unwrap_err(), "key_hashes[0] must be a string");
    }

    #[test]
    fn assign_keys_error_names_path() {
        let error = ApiError::from(AssignKeysError::EmptyHash(3));
        assert_eq!((error.status().as_u16(), error.text()), (400, "key_hashes[3] must not be empty"));
        assert_eq!(ApiError::from(AssignKeysError::Name(NameError::Unknown)).text(), "Resource not found");
    }
}
