//! `multipart/form-data`: splits a complete body into the JSON of a request and its files.

use bytes::Bytes;

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
    let (essence, parameters) = content_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    let fits = (1..=70).contains(&boundary.len()) && boundary.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    fits.then_some(boundary)
}

/// Returns the parts of a body, in order.
///
/// # Errors
/// Describes the violation without quoting the body.
pub(crate) fn parts(body: &Bytes, boundary: &str) -> Result<Vec<Part>, &'static str> {
    let first = format!("--{boundary}");
    let delimiter = format!("\r\n{first}");
    let mut at = if body.starts_with(first.as_bytes()) {
        first.len()
    } else {
        find(body, delimiter.as_bytes(), 0).ok_or(NO_BOUNDARY)? + delimiter.len()
    };
    let mut parts: Vec<Part> = Vec::new();
    loop {
        if body[at..].starts_with(b"--") {
            return Ok(parts);
        }
        let padding = body[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        at += padding;
        if !body[at..].starts_with(b"\r\n") {
            return Err("a boundary in the body is followed by what is no line");
        }
        let end = find(body, delimiter.as_bytes(), at).ok_or("the body ends before its last boundary")?;
        let part = part(body, at + 2, end)?;
        if parts.iter().any(|other| other.name == part.name) {
            return Err("two parts of the body have one name");
        }
        if parts.len() == MAX_PARTS {
            return Err("the body has more than 64 parts");
        }
        parts.push(part);
        at = end + delimiter.len();
    }
}

const NO_BOUNDARY: &str = "the body does not begin with its boundary";

/// Parses one part: headers, an empty line, content.
fn part(body: &Bytes, begin: usize, end: usize) -> Result<Part, &'static str> {
    // A part without headers begins with the empty line.
    let blank = b"\r\n\r\n";
    let head_end = if body[begin..].starts_with(b"\r\n") { Some(begin) } else { find(body, blank, begin) };
    let head_end = head_end.filter(|at| *at < end).ok_or("a part of the body has no content")?;
    let content = if body[begin..].starts_with(b"\r\n") { begin + 2 } else { head_end + blank.len() };
    // Without content, the empty line may overlap the start of the delimiter.
    let data = body.slice(content.min(end)..end);
    if head_end - begin > MAX_HEAD_BYTES {
        return Err("the headers of a part are too large");
    }
    let head = std::str::from_utf8(&body[begin..head_end]).map_err(|_| "the headers of a part are not UTF-8")?;
    let (mut name, mut media_type) = (None, None);
    for line in head.split("\r\n").filter(|line| !line.is_empty()) {
        let (header, value) = line.split_once(':').ok_or("a header of a part has no colon")?;
        if header.eq_ignore_ascii_case("content-disposition") {
            let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
            if !kind.trim().eq_ignore_ascii_case("form-data") {
                return Err("a part of the body is no form-data");
            }
            name = parameter(parameters, "name");
        } else if header.eq_ignore_ascii_case("content-type") {
            media_type = Some(value.trim().to_owned());
        } else if header.eq_ignore_ascii_case("content-transfer-encoding") && !is_plain(value) {
            return Err("a part of the body is encoded; parts are taken as they are");
        }
    }
    let name = name.ok_or("a part of the body has no name")?;
    Ok(Part { name, media_type, data })
}

/// Returns true for encodings that change no bytes. Others are deprecated for forms (RFC 7578, 4.7) and are rejected.
fn is_plain(encoding: &str) -> bool {
    ["7bit", "8bit", "binary"].iter().any(|plain| encoding.trim().eq_ignore_ascii_case(plain))
}

/// Returns the value of a header parameter without its quotes.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim_matches([' ', '\t', ';']);
        let (value, after) = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            unquote(quoted)?
        } else {
            let (value, after) = after.split_once(';').unwrap_or((after, ""));
            (value.trim().to_owned(), after)
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after;
    }
}

/// Returns the text up to the closing quote, and the rest.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

/// Finds `wanted`, which begins with a carriage return, at or after `from`.
fn find(body: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += body.get(at..)?.iter().position(|byte| *byte == b'\r')?;
        if body[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The name, media type and content of a part.
    type Shown = (String, Option<String>, String);

    fn parts_of(body: &str) -> Result<Vec<Shown>, &'static str> {
        let parts = parts(&Bytes::from(body.to_owned()), "B")?;
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
