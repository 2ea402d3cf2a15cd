//! The script of the page `GET /docs`.

use std::io::Read;
use std::sync::OnceLock;

use actix_web::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};
use bytes::Bytes;
use domain::error::ErrorKind;
use flate2::read::GzDecoder;
use utoipa::openapi::path::OperationBuilder;
use utoipa::openapi::schema::Type;

use super::respond;
use crate::http::call::Call;
use crate::http::error::ApiError;
use crate::http::routes::{Handler, Method, OpenHandler, Outcome, Route};
use crate::openapi::operations::{operation, text_responses};
use crate::openapi::tags;

pub(crate) const ROUTE: Route = Route::new(
    Method::Get,
    "/docs/rapidoc-9.3.8.min.js",
    Handler::Open(OpenHandler::Memory(handle)),
    tags::SERVICE,
    describe,
)
.outside_base();

/// The viewer, compressed. `assets/README.md` names its source and licence.
const SCRIPT: &[u8] = include_bytes!("../../../assets/rapidoc-9.3.8/rapidoc-min.js.gz");
/// The script's URL contains its version.
const CACHE_FOREVER: &str = "public, max-age=31536000, immutable";

fn describe() -> OperationBuilder {
    let description = "The script of the page";
    let responses = text_responses("The script", "text/javascript", Type::String, "/*! RapiDoc 9.3.8 */".into());
    operation("docsScript", description).responses(responses)
}

/// Returns the viewer's script, decompressed for clients that do not accept gzip.
fn handle(call: &Call<'_>) -> Outcome {
    let is_gzip = accepts_gzip(call.request.headers());
    let body = if is_gzip { Bytes::from_static(SCRIPT) } else { decompressed_script()? };
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
pub(super) fn decompressed_script() -> Result<Bytes, ApiError> {
    static DECOMPRESSED: OnceLock<Bytes> = OnceLock::new();
    if let Some(script) = DECOMPRESSED.get() {
        return Ok(script.clone());
    }
    let mut script = Vec::new();
    GzDecoder::new(SCRIPT)
        .read_to_end(&mut script)
        .map_err(|error| ApiError::from_kind(ErrorKind::Internal).caused_by(error))?;
    Ok(DECOMPRESSED.get_or_init(|| Bytes::from(script)).clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;

    #[test]
    fn script_is_unchanged_copy_of_package() {
        let digest = Sha256::digest(SCRIPT).iter().fold(String::new(), |mut hex, byte| {
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
