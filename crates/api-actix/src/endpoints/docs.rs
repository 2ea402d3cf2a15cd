//! `GET /openapi.json` and `GET /docs`: the API description for programs and people.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::http::edge::Call;

/// The documentation page with the embedded document, so that it loads nothing else.
pub(crate) struct DocsPage {
    html: Bytes,
    policy: HeaderValue,
}

const SCRIPT: &str = include_str!("docs/page.js");
const STYLE: &str = include_str!("docs/page.css");

impl DocsPage {
    pub(crate) fn new(openapi: &str) -> Self {
        // Only `<` could end the script element; JSON can escape it.
        let document = openapi.replace('<', "\\u003c");
        let html = format!(
            concat!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
                "<meta name=\"viewport\" content=\"width=device-width\"><title>Tollgate</title><style>{}</style></head>",
                "<body><main id=\"page\"><noscript>The document itself is at /openapi.json</noscript></main>",
                "<script type=\"application/json\" id=\"openapi\">{}</script><script>{}</script></body></html>"
            ),
            STYLE, document, SCRIPT
        );
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            digest(SCRIPT),
            digest(STYLE)
        );
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self { html: Bytes::from(html), policy }
    }
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

pub(crate) fn document(call: &Call<'_>) -> HttpResponse {
    respond(call.gateway.openapi.clone(), HeaderValue::from_static("application/json"))
}

pub(crate) fn page(call: &Call<'_>) -> HttpResponse {
    let docs = &call.gateway.docs;
    let mut response = respond(docs.html.clone(), HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, docs.policy.clone());
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn respond(body: Bytes, content_type: HeaderValue) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_page_is_self_contained() {
        let page = DocsPage::new(r#"{"info":{"title":"</script><b>"}}"#);
        let html = String::from_utf8(page.html.to_vec()).unwrap();
        assert!(!html.contains("http://") && !html.contains("https://") && !html.contains("src="));
        assert!(html.contains(r#""title":"\u003c/script>"#));
        let policy = page.policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"));
        assert!(!policy.contains("unsafe"));
    }
}
