//! `GET /docs`: the API description for people.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY};
use bytes::Bytes;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::Type;

use super::respond;
use crate::http::routes::{Handler, Method, OpenHandler, Route};
use crate::openapi::operations::{operation, text_responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route =
    Route::new(Method::Get, "/docs", Handler::Open(OpenHandler::Memory(|_| Ok(page()))), tags::SERVICE, describe)
        .outside_base();

/// The page, which names the script and the document by relative URLs.
const PAGE: &str = include_str!("page.html");
/// The page runs the viewer's script and sends requests to this server only. The viewer sets inline styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn describe() -> OperationBuilder {
    let description = "The API documentation as a page";
    operation("docs", description).responses(text_responses(
        "The page",
        "text/html",
        Type::String,
        "<!doctype html>".into(),
    ))
}

fn page() -> HttpResponse {
    let mut response = respond(Bytes::from_static(PAGE.as_bytes()), "text/html; charset=utf-8");
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The viewer names these parts; in a window of 400 pixels the rules keep its controls inside.
    #[test]
    fn rules_for_narrow_windows_apply_to_parts_of_the_viewer() {
        let (_, rules) = PAGE.split_once("@media (max-width: 767px) {").unwrap();
        let (rules, _) = rules.split_once("</style>").unwrap();
        let script = String::from_utf8(super::super::script::decompressed_script().unwrap().to_vec()).unwrap();
        let parts: Vec<&str> = rules.split("::part(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(parts, ["section-navbar", "section-main-content", "wrap-request-btn", "anchor-operation-security"]);
        for part in parts {
            assert!(script.contains(part), "{part}");
        }
    }

    #[test]
    fn page_names_no_other_host() {
        assert!(!PAGE.contains("//"), "{PAGE}");
        assert!(PAGE.contains(r#"load-fonts="false""#), "the script names a host of web fonts");
        assert!(!POLICY.contains("unsafe-eval") && !POLICY.contains("http"), "{POLICY}");
        assert!(POLICY.contains("script-src 'self';") && POLICY.contains("connect-src 'self';"), "{POLICY}");
    }
}
