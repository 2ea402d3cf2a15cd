//! `GET /openapi.json` and `GET /docs`: the API description for programs and people.

use std::io::Read;
use std::sync::OnceLock;

use actix_web::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use bytes::Bytes;
use domain::error::ErrorKind;
use flate2::read::GzDecoder;
use utoipa::openapi::schema::Type;

use crate::endpoints::prelude::*;
use crate::http::operation::JSON;

fn respond(body: Bytes, content_type: &'static str) -> HttpResponse {
    let mut response = HttpResponse::with_body(StatusCode::OK, body).map_into_boxed_body();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) const DOCUMENT: Route = Route::open("/openapi.json", tags::SERVICE, OpenHandler::Memory(handle_document))
    .operation("openapi", "The OpenAPI document")
    .complete(|operation| {
        let example = json!({"openapi": "3.1.0", "info": {"title": "Tollgate", "version": "1.0.0"}, "paths": {}});
        operation.text("The document", JSON, Type::Object, example)
    });

#[expect(clippy::unnecessary_wraps, reason = "the type of a handler")]
fn handle_document(call: &Call<'_>) -> Outcome {
    let gateway = call.gateway;
    Ok(respond(gateway.openapi.render(&gateway.services.routed.current().list_models), JSON))
}

pub(crate) const PAGE: Route = Route::open("/docs", tags::SERVICE, OpenHandler::Memory(|_| Ok(page())))
    .operation("docs", "The API documentation as a page")
    .complete(|operation| operation.text("The page", "text/html", Type::String, "<!doctype html>".into()));

/// The page, which names the script and the document by relative URLs.
const PAGE_HTML: &str = include_str!("docs.html");
/// The page runs the viewer's script and sends requests to this server only. The viewer sets inline styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn page() -> HttpResponse {
    let mut response = respond(Bytes::from_static(PAGE_HTML.as_bytes()), "text/html; charset=utf-8");
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(crate) const SCRIPT: Route =
    Route::open("/docs/rapidoc-9.3.8.min.js", tags::SERVICE, OpenHandler::Memory(handle_script))
        .operation("docsScript", "The script of the page")
        .complete(|operation| {
            operation.text("The script", "text/javascript", Type::String, "/*! RapiDoc 9.3.8 */".into())
        });

/// The viewer, compressed. `assets/README.md` names its source and licence.
const SCRIPT_GZIP: &[u8] = include_bytes!("../../assets/rapidoc-9.3.8/rapidoc-min.js.gz");
/// The script's URL contains its version.
const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";

/// Returns the viewer's script, decompressed for clients that do not accept gzip.
fn handle_script(call: &Call<'_>) -> Outcome {
    let is_gzip = accepts_gzip(call.request.headers());
    let body = if is_gzip { Bytes::from_static(SCRIPT_GZIP) } else { decompressed_script()? };
    let mut response = respond(body, "text/javascript; charset=utf-8");
    let headers = response.headers_mut();
    if is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CACHE_FOREVER));
    Ok(response)
}

/// Returns true if `Accept-Encoding` names gzip with a weight above zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = parameters.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && !weight.bytes().all(|digit| matches!(digit, b'0' | b'.'))
    })
}

/// Decompresses the script once per process.
fn decompressed_script() -> Result<Bytes, ApiError> {
    static DECOMPRESSED: OnceLock<Bytes> = OnceLock::new();
    if let Some(script) = DECOMPRESSED.get() {
        return Ok(script.clone());
    }
    let mut script = Vec::new();
    GzDecoder::new(SCRIPT_GZIP)
        .read_to_end(&mut script)
        .map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?;
    Ok(DECOMPRESSED.get_or_init(|| Bytes::from(script)).clone())
}

/// `GET /`: the name of the service and the paths of its documentation.
pub(crate) const ROOT: Route = Route::open("/", tags::SERVICE, OpenHandler::Memory(handle_root))
    .operation("root", "The name of the service and the paths of its documentation")
    .answer(BodySchema::of::<RootView<'_>>, "The name and the paths");

/// The name of the service and the paths of its documentation.
#[derive(Serialize, ToSchema)]
#[schema(as = RootResponse)]
struct RootView<'a> {
    /// The base path of the operations.
    base_path: &'a str,
    description: &'static str,
    documentation: &'static str,
    name: &'static str,
    openapi: &'static str,
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a handler")]
fn handle_root(call: &Call<'_>) -> Outcome {
    Ok(HttpResponse::Ok().json(RootView {
        base_path: &call.gateway.settings.base_path,
        description: "Gateway to AI decision models; it serves no chat models",
        documentation: "/docs",
        name: "Tollgate",
        openapi: "/openapi.json",
    }))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use sha2::{Digest, Sha256};

    use super::*;

    /// The viewer names these parts; in a window of 400 pixels the rules keep its controls inside.
    #[test]
    fn rules_for_narrow_windows_apply_to_parts_of_the_viewer() {
        let (_, rules) = PAGE_HTML.split_once("@media (max-width: 767px) {").unwrap();
        let (rules, _) = rules.split_once("</style>").unwrap();
        let script = String::from_utf8(decompressed_script().unwrap().to_vec()).unwrap();
        let parts: Vec<&str> = rules.split("::part(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(parts, ["section-navbar", "section-main-content", "wrap-request-btn", "anchor-operation-security"]);
        for part in parts {
            assert!(script.contains(part), "{part}");
        }
    }

    #[test]
    fn page_names_no_other_host() {
        assert!(!PAGE_HTML.contains("//"), "{PAGE_HTML}");
        assert!(PAGE_HTML.contains(r#"load-fonts="false""#), "the script names a host of web fonts");
        assert!(!POLICY.contains("unsafe-eval") && !POLICY.contains("http"), "{POLICY}");
        assert!(POLICY.contains("script-src 'self';") && POLICY.contains("connect-src 'self';"), "{POLICY}");
    }

    #[test]
    fn script_is_unchanged_copy_of_package() {
        let digest = Sha256::digest(SCRIPT_GZIP).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        assert_eq!(digest, "b083f080f1727f019ccf551228392e0fc39a0be450ba19bca451ea31d6be2ec9");
        assert!(decompressed_script().unwrap().starts_with(b"/*! RapiDoc 9.3.8"));
    }

    #[test]
    fn gzip_is_accepted_unless_weight_is_zero() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip; q=0.001", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, br", false),
            ("identity", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(accepts_gzip(&headers), expected, "{value:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
