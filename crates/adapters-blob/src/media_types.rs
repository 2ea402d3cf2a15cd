//! Media types from content and file extension.

use domain::file::MediaTypes;
use infer::MatcherType;

/// Detects media types by signature, then by whether the content is text, then by extension.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContentMediaTypes;

const UNKNOWN: &str = "application/octet-stream";

/// Formats with a signature whose content may be plain text.
const TEXTUAL_SIGNATURES: [&str; 4] = ["application/pdf", "application/rtf", "text/rtf", "application/postscript"];

/// Formats in zip archives, whose content is often only detected as zip.
const IN_ZIP: [&str; 9] = ["docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "jar", "apk"];

impl MediaTypes for ContentMediaTypes {
    fn detect(&self, head: &[u8], filename: &str) -> String {
        let extension =
            filename.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        let by_extension = match extension.as_str() {
            "jsonl" | "ndjson" => Some("application/x-ndjson"),
            extension => mime_guess::from_ext(extension).first_raw(),
        };
        let signature = infer::get(head);
        if is_text(head) {
            return match signature.map(|kind| (kind.matcher_type(), kind.mime_type())) {
                Some((_, mime)) if TEXTUAL_SIGNATURES.contains(&mime) => mime,
                Some((MatcherType::Text, "text/html")) => "text/html",
                Some((MatcherType::Text, "text/xml")) => {
                    by_extension.filter(|mime| mime.ends_with("xml")).unwrap_or("text/xml")
                }
                // Short signatures also match the beginning of plain texts.
                _ => by_extension.filter(|mime| is_textual(mime)).unwrap_or(if head.is_empty() {
                    UNKNOWN
                } else {
                    "text/plain"
                }),
            }
            .to_owned();
        }
        let Some(signature) = signature else { return UNKNOWN.to_owned() };
        match by_extension {
            Some(mime) if signature.mime_type() == "application/zip" && IN_ZIP.contains(&extension.as_str()) => mime,
            _ => registered(signature.mime_type()),
        }
        .to_owned()
    }
}

/// Returns the common name for media types that the signature library knows by an older one.
fn registered(mime: &'static str) -> &'static str {
    match mime {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        other => other,
    }
}

/// Returns true for UTF-8 without unusual control characters. The head may end within a character.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    // A head that contains only a part of a character is not text.
    (head.is_empty() || !valid.is_empty())
        && !valid.chars().any(|c| c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}'))
}

/// Returns true for text types.
fn is_textual(mime: &str) -> bool {
    const TYPES: [&str; 9] = [
        "application/json",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/javascript",
        "application/toml",
        "application/sql",
        "application/x-sh",
    ];
    mime.starts_with("text/") || mime.ends_with("+json") || mime.ends_with("+xml") || TYPES.contains(&mime)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn content_media_types() -> Box<dyn MediaTypes> {
        Box::new(ContentMediaTypes)
    }

    domain::media_types_contract!(
        #[tokio::test]
        crate::media_types::tests::content_media_types
    );

    #[track_caller]
    fn assert_type(head: &[u8], filename: &str, expected: &str) {
        assert_eq!(ContentMediaTypes.detect(head, filename), expected, "{filename}");
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    #[test]
    fn detection_prefers_content_to_extension() {
        assert_type(PNG, "out/report.csv", "image/png");
        assert_type(PNG, "plain", "image/png");
        assert_type(b"%PDF-1.7\n1 0 obj", "a.txt", "application/pdf");
        assert_type(b"not an image", "a.png", "text/plain");
        assert_type(b"<!DOCTYPE html><html></html>", "a.csv", "text/html");
        assert_type(b"\x01\x02\xff\xfe", "a.csv", "application/octet-stream");
        assert_type(b"a,b\0c", "a.csv", "application/octet-stream");
    }

    #[test]
    fn detection_distinguishes_texts_by_extension() {
        assert_type(b"a,b\n1,2\n", "out/r.v2/report.CSV", "text/csv");
        assert_type(b"{}", "a.json", "application/json");
        assert_type(b"{}\n{}\n", "a.jsonl", "application/x-ndjson");
        assert_type(b"{}\n{}\n", "a.NDJSON", "application/x-ndjson");
        assert_type(b"# Title", "a.md", "text/markdown");
        assert_type(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a.svg", "image/svg+xml");
        assert_type(b"<?xml version=\"1.0\"?><a/>", "a.xml", "text/xml");
        assert_type(b"words", "folder.csv/words", "text/plain");
        assert_type(b"words", ".hidden", "text/plain");
        assert_type(b"words", "", "text/plain");
        assert_type(b"", "a.csv", "text/csv");
        assert_type(b"", "a", "application/octet-stream");
    }

    #[test]
    fn detection_recognises_text_with_binary_signature() {
        assert_type(b"BMW,Audi\n1,2\n", "cars.csv", "text/csv");
        assert_type(b"MZ is a prefix", "a.txt", "text/plain");
    }

    #[test]
    fn detection_returns_common_audio_types() {
        assert_type(b"RIFF\x10\0\0\0WAVEfmt ", "a", "audio/wav");
        assert_type(b"fLaC\0\0\0\x22", "a", "audio/flac");
        assert_type(b"ID3\x03\0\0\0\0", "a", "audio/mpeg");
    }

    #[test]
    fn detection_accepts_truncated_character_in_text() {
        assert_type(&"größe".as_bytes()[..3], "a.csv", "text/csv");
        assert_type(b"\xc3", "a.csv", "application/octet-stream");
        assert_type(b"ab\xff\xc3", "a.csv", "application/octet-stream");
    }

    #[test]
    fn detection_distinguishes_zip_archives_by_extension() {
        let zip = b"PK\x03\x04\x14\0\0\0\x08\0 anything else that a zip has inside it";
        assert_type(zip, "a.zip", "application/zip");
        assert_type(zip, "a.csv", "application/zip");
        let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        assert_type(zip, "a.xlsx", sheet);
    }
}
