//! Entry points for the fuzz targets into private parsers. Built with `--cfg fuzzing` only.

use std::sync::Arc;

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use bytes::Bytes;
use domain::ids::ApiKeyId;
use futures_util::FutureExt;
use uuid::Uuid;
use wires::client::BodyError;
use wires::formats::ParsedRequest;

use crate::detection::{Entry, read};
use crate::http::admission::{Account, AdmissionSettings, BodyMemory};
use crate::http::body::{boundary, from_form};
use crate::http::encoding::ContentEncoding;
use crate::http::recorder::NoRecorder;

/// Reads a form of that content type; returns `None` if the type is not a form.
///
/// # Errors
/// The form is not a valid request.
pub fn read_form(content_type: &str, form: &Bytes) -> Option<Result<ParsedRequest, ()>> {
    let boundary = boundary(content_type)?;
    let (body, parts) = match from_form(form.clone(), &boundary).now_or_never()? {
        Ok(parsed) => parsed,
        Err(_) => return Some(Err(())),
    };
    let text = body.text().map_err(drop);
    Some(text.and_then(|text| read(Entry::Contract, text, parts, |_| Ok::<(), BodyError>(())).map_err(drop)))
}

/// Decompresses a body of that `Content-Encoding` to at most `max_bytes`; returns `None` if it is rejected. `max_bytes`
/// must be below the bound for decompression on the worker thread.
pub fn decompress(encoding: &str, compressed: Bytes, max_bytes: usize) -> Option<Bytes> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).ok()?);
    let encoding = ContentEncoding::from_headers(&headers).ok()?;
    let memory = Arc::new(BodyMemory::new(AdmissionSettings::default(), Arc::new(NoRecorder)));
    let lease = memory.lease(Account::Key(ApiKeyId::from_uuid(Uuid::nil())));
    encoding.decompress(compressed, max_bytes, lease).now_or_never()?.ok().map(|(bytes, _)| bytes)
}
