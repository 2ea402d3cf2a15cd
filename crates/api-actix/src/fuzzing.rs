//! A door for fuzzing to what reads bytes and is no public part of this crate. Built with `--cfg fuzzing` alone.

use std::sync::Arc;

use actix_web::http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use bytes::Bytes;
use domain::ids::ApiKeyId;
use futures_util::FutureExt;
use uuid::Uuid;

use crate::http::admission_bound::{Account, AdmissionSettings};
use crate::http::body::of_form;
use crate::http::body_memory::BodyMemory;
use crate::http::encoding::ContentEncoding;
use crate::http::multipart;
use crate::http::recorder::NoRecorder;
use crate::wires::dispatch::{Asked, Entry, read};

/// As a form of that content type is read; `None` where the type is that of no form.
///
/// # Errors
/// It is no request.
pub fn read_form(content_type: &str, form: &Bytes) -> Option<Result<Asked, ()>> {
    let boundary = multipart::boundary(content_type)?;
    let asked = of_form(form, &boundary).and_then(|(body, parts)| {
        let text = body.text()?;
        Ok(read(Entry::Contract, text, parts))
    });
    Some(asked.map_err(drop).and_then(|asked| asked.map_err(drop)))
}

/// Unpacks a body of that `Content-Encoding` to at most `max_bytes`, fewer than are unpacked in one turn; `None` where
/// it is refused.
pub fn unpack(encoding: &str, packed: Bytes, max_bytes: usize) -> Option<Bytes> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).ok()?);
    let encoding = ContentEncoding::of(&headers).ok()?;
    let memory = Arc::new(BodyMemory::new(AdmissionSettings::default(), Arc::new(NoRecorder)));
    let lease = memory.lease(Account::Key(ApiKeyId::from_uuid(Uuid::nil())));
    encoding.unpack(packed, max_bytes, lease).now_or_never()?.ok().map(|(bytes, _)| bytes)
}
