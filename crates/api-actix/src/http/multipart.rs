//! `multipart/form-data`: splits a complete body into the JSON of a request and its files.
//!
//! `multer` finds the parts. It searches the name of a part inside quoted file names too, so names are parsed by
//! actix-web.

use std::convert::Infallible;
use std::future::ready;

use actix_web::http::header::{ContentDisposition, HeaderValue};
use bytes::{Buf as _, Bytes};
use futures_util::stream;
use multer::{Error, Field, Multipart};

/// The maximum number of parts of a body.
const MAX_PARTS: usize = 64;
/// The maximum size of a part's headers, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// One part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) media_type: Option<String>,
    pub(crate) data: Bytes,
}

/// Returns the boundary of a `multipart/form-data` content type; `None` for other types or without a boundary.
pub(crate) fn boundary(content_type: &str) -> Option<String> {
    let parsed = parse_parameters(content_type).filter(|parsed| parsed.is_ext("multipart/form-data"))?;
    let boundary = parsed.get_unknown("boundary")?;
    let fits = (1..=70).contains(&boundary.len()) && boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    fits.then(|| boundary.to_owned())
}

/// Parses a type with parameters: the grammar of Content-Disposition is also that of Content-Type.
fn parse_parameters(header: &str) -> Option<ContentDisposition> {
    ContentDisposition::from_raw(&HeaderValue::from_bytes(header.as_bytes()).ok()?).ok()
}

/// Returns the parts of a body, in order. Takes the body, so that it is freed when the parser has copied it.
///
/// # Errors
/// Describes the violation without quoting the body.
pub(crate) async fn parts(mut body: Bytes, boundary: &str) -> Result<Vec<Part>, &'static str> {
    let first = first_boundary(&body, boundary).ok_or("the body does not begin with its boundary")?;
    body.advance(first);
    let mut form = Multipart::new(stream::once(ready(Ok::<_, Infallible>(body))), boundary);
    let mut parts: Vec<Part> = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| describe(&error))? {
        let part = read_part(field).await?;
        if parts.iter().any(|other| other.name == part.name) {
            return Err("two parts of the body have one name");
        }
        if parts.len() == MAX_PARTS {
            return Err("the body has more than 64 parts");
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Finds the boundary at the start of a line, because `multer` takes one in the middle of a line too.
fn first_boundary(body: &[u8], boundary: &str) -> Option<usize> {
    let wanted = format!("--{boundary}");
    let starts_line = |at: &usize| *at == 0 || body[..*at].ends_with(b"\r\n");
    let line_feeds = body.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut lines = std::iter::once(0).chain(line_feeds.map(|(at, _)| at + 1)).filter(starts_line);
    lines.find(|at| body[*at..].starts_with(wanted.as_bytes()))
}

fn describe(error: &Error) -> &'static str {
    match error {
        Error::IncompleteStream | Error::IncompleteFieldData { .. } => {
            "the body ends before its last boundary, or a boundary is followed by what is no line"
        }
        _ => "the headers of a part are not valid",
    }
}

/// Reads one part, whose data is complete.
async fn read_part(mut field: Field<'_>) -> Result<Part, &'static str> {
    let headers = field.headers();
    if headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() > MAX_HEAD_BYTES {
        return Err("the headers of a part are too large");
    }
    let header = |name: &str| {
        let value = headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
        value.transpose().map_err(|_| "the headers of a part are not UTF-8")
    };
    if header("content-transfer-encoding")?.is_some_and(|encoding| !is_plain(encoding)) {
        return Err("a part of the body is encoded; parts are taken as they are");
    }
    let media_type = header("content-type")?.map(|value| value.trim().to_owned());
    let disposition = header("content-disposition")?.and_then(parse_parameters).ok_or(NO_NAME)?;
    if !disposition.is_form_data() {
        return Err("a part of the body is no form-data");
    }
    let name = disposition.get_name().ok_or(NO_NAME)?.to_owned();
    let data = field.chunk().await.map_err(|error| describe(&error))?.unwrap_or_default();
    Ok(Part { name, media_type, data })
}

const NO_NAME: &str = "a part of the body has no name";

/// Returns true for encodings that change no bytes. Others are deprecated for forms (RFC 7578, 4.7) and are rejected.
fn is_plain(encoding: &str) -> bool {
    ["7bit", "8bit", "binary"].iter().any(|plain| encoding.trim().eq_ignore_ascii_case(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use proptest::prelude::*;

    /// The name, media type and content of a part.
    type Shown = (String, Option<String>, String);

    fn parts_of(body: &str) -> Result<Vec<Shown>, &'static str> {
        let parts = parts(Bytes::from(body.to_owned()), "B").now_or_never().expect("the body is complete")?;
        let shown = |part: Part| (part.name, part.media_type, String::from_utf8(part.data.to_vec()).unwrap());
        Ok(parts.into_iter().map(shown).collect())
    }

    #[test]
    fn boundary_is_read_from_content_type() {
        assert_eq!(boundary("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(boundary("Multipart/Form-Data;charset=x; Boundary=\"a b;\\\"c\"").as_deref(), Some("a b;\"c"));
        for other in [
            "multipart/form-data",
            "multipart/mixed; boundary=a",
            "application/json; boundary=a",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"open",
            &format!("multipart/form-data; boundary={}", "x".repeat(71)),
        ] {
            assert_eq!(boundary(other), None, "{other}");
        }
    }

    #[test]
    fn parts_keep_order_and_bytes() {
        let body = "--B\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n{}\r\n\
                    --B  \r\ncontent-disposition: form-data; filename=\"a;name=x\"; name=\"asset-0\"\r\n\r\n\r\n--b\r\n-\r\n\
                    --B\r\nContent-Disposition: form-data; name=empty\r\n\r\n\r\n--B--\r\nepilogue";
        assert_eq!(
            parts_of(body).unwrap(),
            [
                ("request".to_owned(), Some("application/json".to_owned()), "{}".to_owned()),
                ("asset-0".to_owned(), None, "\r\n--b\r\n-".to_owned()),
                ("empty".to_owned(), None, String::new()),
            ]
        );
        let binary =
            "--B\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: Binary\r\n\r\nx\r\n--B--";
        assert_eq!(parts_of(binary).unwrap(), [("a".to_owned(), None, "x".to_owned())]);
        assert_eq!(parts_of("--B--").unwrap(), []);
        assert_eq!(parts_of("preamble\r\n--B--\r\n").unwrap(), []);
        let within_line = "x--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B--";
        assert_eq!(parts_of(within_line).unwrap(), []);
    }

    #[test]
    fn parts_rejects_malformed_forms() {
        let named = "Content-Disposition: form-data; name=\"a\"";
        for body in [
            String::new(),
            "B".to_owned(),
            "--B".to_owned(),
            "--B\r\n".to_owned(),
            "--Bx".to_owned(),
            "--Bxy\r\n".to_owned(),
            format!("--B\r\n{named}\r\n\r\nx"),
            format!("--B\r\n{named}\r\n--B--"),
            "--B\r\n\r\nx\r\n--B--".to_owned(),
            format!("--B\r\n{named}\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--B--"),
            "--B\r\nContent-Type: x\r\n\r\nx\r\n--B--".to_owned(),
            "--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--".to_owned(),
            "--B\r\nno colon\r\n\r\nx\r\n--B--".to_owned(),
            format!("--B\r\n{named}\r\n\r\nx\r\n--B\r\n{named}\r\n\r\ny\r\n--B--"),
            format!("--B\r\n{named}\r\nX: {}\r\n\r\nx\r\n--B--", "x".repeat(9_000)),
        ] {
            assert!(parts_of(&body).is_err(), "{body:?}");
        }
        let many: String = (0..65).fold(String::new(), |body, i| {
            format!("{body}--B\r\nContent-Disposition: form-data; name={i}\r\n\r\n\r\n")
        });
        assert_eq!(parts_of(&format!("{many}--B--")), Err("the body has more than 64 parts"));
    }

    proptest! {
        #[test]
        fn parts_never_panics(pieces in prop::collection::vec(prop::sample::select(vec![
            "--B", "\r\n", "--", "Content-Disposition: form-data; name=", "\"", "a", ":", " ", "\r", "\n", "\\", ";", "=", "é",
        ]), 0..30)) {
            let _ = parts_of(&pieces.concat());
            boundary(&pieces.concat());
        }

        #[test]
        fn parts_round_trip(contents in prop::collection::vec("[\r\n\\-aB\"é]{0,12}", 1..5)) {
            prop_assume!(contents.iter().all(|content| !format!("\r\n{content}").contains("\r\n--B")));
            let mut body = String::new();
            for (index, content) in contents.iter().enumerate() {
                let head = format!("Content-Disposition: form-data; name=\"{index}\"");
                body = [&body, "--B\r\n", &head, "\r\n\r\n", content, "\r\n"].concat();
            }
            let read = parts_of(&(body + "--B--\r\n")).unwrap();
            prop_assert_eq!(read.into_iter().map(|(_, _, content)| content).collect::<Vec<_>>(), contents);
        }
    }
}
