//! The error envelope: the one body of every failure.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use domain::ids::RequestId;
use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::wire_names::WireNames;

/// True where the caller asks to be told how its request was handled.
pub(crate) fn wants_metadata(headers: &HeaderMap, names: WireNames) -> bool {
    let asks = |name: &&str| headers.get(*name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"enabled"));
    names.metadata_headers().iter().any(asks)
}

/// The answer to a request that failed. `route` is the pattern that was matched.
pub(crate) fn respond(
    error: &ApiError,
    request_id: &RequestId,
    route: Option<&'static str>,
    service_metadata: Option<WireNames>,
) -> HttpResponse {
    let view = error.view();
    let mut metadata = view.metadata.clone();
    metadata.insert("request_id".to_owned(), Value::from(request_id.as_str()));
    let mut envelope = Map::new();
    envelope.insert(
        "error".to_owned(),
        json!({"code": view.status.as_u16(), "message": view.message, "metadata": metadata}),
    );
    if let Some(user_id) = view.user_id {
        envelope.insert("user_id".to_owned(), Value::from(user_id));
    }
    if let Some(names) = service_metadata {
        let mut told = view.service_metadata.clone();
        told.insert("route".to_owned(), Value::from(route));
        envelope.insert(names.service_metadata().to_owned(), Value::Object(told));
    }
    let mut response = HttpResponse::with_body(view.status, Value::Object(envelope).to_string()).map_into_boxed_body();
    if let Some(reason) = reason(view.status) {
        response.head_mut().reason = Some(reason);
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in view.headers {
        headers.insert(name.clone(), value.clone());
    }
    response
}

/// The phrase of a status that the registry has none for.
fn reason(status: StatusCode) -> Option<&'static str> {
    match status.as_u16() {
        499 => Some("Client Closed Request"),
        524 => Some("A Timeout Occurred"),
        529 => Some("Site Is Overloaded"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::body::to_bytes;
    use actix_web::http::header::HeaderName;
    use domain::error::ErrorKind;

    async fn envelope(error: ApiError, names: Option<WireNames>) -> String {
        let response = respond(&error, &"req-1".parse().unwrap(), Some("/docs"), names);
        String::from_utf8(to_bytes(response.into_body()).await.unwrap().to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn an_envelope_has_what_the_interface_says() {
        let plain = envelope(ApiError::of(ErrorKind::NotFound), None).await;
        assert_eq!(plain, r#"{"error":{"code":404,"message":"Resource not found","metadata":{"request_id":"req-1"}}}"#);
    }

    #[actix_web::test]
    async fn extras_are_there_when_they_are_known_or_asked_for() {
        let error = || {
            ApiError::invalid("x: y")
                .metadata("file_bytes", 3)
                .user_id(Some("acme".into()))
                .service_metadata("attempts", json!([]))
        };
        let told = envelope(error(), Some(WireNames::OpenRouter)).await;
        assert_eq!(
            told,
            concat!(
                r#"{"error":{"code":400,"message":"x: y","metadata":{"file_bytes":3,"request_id":"req-1"}},"#,
                r#""openrouter_metadata":{"attempts":[],"route":"/docs"},"user_id":"acme"}"#
            )
        );
        assert!(!envelope(error(), None).await.contains("attempts"));
    }

    #[test]
    fn metadata_is_asked_for_by_a_header_of_the_profile() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        assert!(wants_metadata(&headers("x-tollgate-metadata", "enabled"), WireNames::Interface));
        assert!(wants_metadata(&headers("x-openrouter-metadata", "enabled"), WireNames::OpenRouter));
        assert!(!wants_metadata(&headers("x-openrouter-metadata", "enabled"), WireNames::Interface));
        assert!(!wants_metadata(&headers("x-tollgate-metadata", "no"), WireNames::Interface));
    }

    #[test]
    fn unregistered_statuses_have_a_phrase() {
        let response = respond(&ApiError::of(ErrorKind::TimedOut), &"r".parse().unwrap(), None, None);
        assert_eq!(response.status().as_u16(), 524);
        assert_eq!(response.head().reason(), "A Timeout Occurred");
    }
}
