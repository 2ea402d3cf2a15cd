//! Media types from content and file extension.

use infer::MatcherType;

const UNKNOWN: &str = "application/octet-stream";

/// Formats with a signature whose content may be plain text.
const TEXTUAL_SIGNATURES: [&str; 4] = ["application/pdf", "application/rtf", "text/rtf", "application/postscript"];

/// Formats in zip archives, whose content is often only detected as zip.
const IN_ZIP: [&str; 9] = ["docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "jar", "apk"];

/// Detects a media type by signature, then by whether the content is text, then by extension; see
/// [`DetectMediaType`](domain::file::DetectMediaType).
pub fn detect_media_type(head: &[u8], filename: &str) -> String {
    let extension = filename.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    let extension = extension.unwrap_or_default().to_ascii_lowercase();
    let by_extension = match extension.as_str() {
        "jsonl" | "ndjson" => Some("application/x-ndjson"),
        // Notebooks are JSON. Few clients know a type of their own.
        "ipynb" => Some("application/json"),
        extension => mime_guess::from_ext(extension).first_raw(),
    };
    let signature = infer::get(head);
    if is_utf8_text(head) || is_utf16_text(head) || (is_plain_text(by_extension) && is_8bit_text(head)) {
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

/// Returns the common name for media types that the signature library knows by an older one.
fn registered(mime: &'static str) -> &'static str {
    match mime {
        "audio/x-wav" => "audio/wav",
        "audio/x-flac" => "audio/flac",
        other => other,
    }
}

/// Returns true for UTF-8 without unusual control characters. The head may end within a character.
fn is_utf8_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    // A head that contains only a part of a character is not text.
    (head.is_empty() || !valid.is_empty()) && valid.chars().all(is_text_character)
}

/// Returns true for UTF-16 with a byte order mark and without unusual control characters, as spreadsheet programs write
/// it. The head may end within a character.
fn is_utf16_text(head: &[u8]) -> bool {
    let (read, units): (fn([u8; 2]) -> u16, _) = match head {
        [0xff, 0xfe, units @ ..] => (u16::from_le_bytes, units),
        [0xfe, 0xff, units @ ..] => (u16::from_be_bytes, units),
        _ => return false,
    };
    let mut units: Vec<u16> = units.as_chunks().0.iter().copied().map(read).collect();
    units.pop_if(|last| (0xd800..0xdc00).contains(last));
    char::decode_utf16(units).all(|character| character.is_ok_and(is_text_character))
}

/// Returns true for text in a code page of one byte a character, such as Latin-1: no unusual control characters, and a
/// quarter of ASCII at least, for separators, digits and line ends.
fn is_8bit_text(head: &[u8]) -> bool {
    let ascii = head.iter().filter(|byte| byte.is_ascii()).count();
    ascii.saturating_mul(4) >= head.len() && head.iter().all(|byte| is_text_character(char::from(*byte)))
}

/// Returns false for the control characters of ASCII that texts do not contain.
fn is_text_character(character: char) -> bool {
    !character.is_ascii_control() || matches!(character, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}')
}

/// Returns true for types of text whose character set the content does not name.
fn is_plain_text(mime: Option<&str>) -> bool {
    mime.is_some_and(|mime| mime.starts_with("text/"))
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
    use domain::file::DetectMediaType;

    async fn content_media_types() -> DetectMediaType {
        detect_media_type
    }

    domain::media_types_contract!(
        #[tokio::test]
        crate::media_types::tests::content_media_types
    );

    #[track_caller]
    fn assert_type(head: &[u8], filename: &str, expected: &str) {
        assert_eq!(detect_media_type(head, filename), expected, "{filename}");
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
        assert_type(b"ab\xff\xc3", "a.json", "application/octet-stream");
    }

    #[test]
    fn detection_reads_tables_as_spreadsheet_programs_write_them() {
        let table = "Stadt;Größe\r\nKöln;405,01\r\n";
        let utf16 = |mark: u16, bytes: fn(u16) -> [u8; 2], text: &str| -> Vec<u8> {
            std::iter::once(mark).chain(text.encode_utf16()).flat_map(bytes).collect()
        };
        let latin1 = |text: &str| -> Vec<u8> { text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect() };
        let (little, big) = (utf16(0xfeff, u16::to_le_bytes, table), utf16(0xfeff, u16::to_be_bytes, table));
        let emoji = utf16(0xfeff, u16::to_le_bytes, "a;😀");
        let csv = "text/csv";
        let cases: [(&str, &[u8], &str, &str); 20] = [
            ("UTF-8", table.as_bytes(), "a.csv", csv),
            ("UTF-8 with a mark", &[b"\xef\xbb\xbf", table.as_bytes()].concat(), "a.csv", csv),
            ("UTF-16LE", &little, "a.csv", csv),
            ("UTF-16BE", &big, "A.CSV", csv),
            ("UTF-16 cut within a unit", &little[..little.len() - 1], "a.csv", csv),
            ("UTF-16 cut within a pair", &emoji[..emoji.len() - 2], "a.csv", csv),
            ("UTF-16 with tabs", &utf16(0xfeff, u16::to_le_bytes, "a\tb\r\n"), "a.txt", "text/plain"),
            ("UTF-16 in a TSV", &little, "a.tsv", "text/tab-separated-values"),
            ("UTF-16 without a name", &little, "a", "text/plain"),
            ("a mark alone", b"\xff\xfe", "a.csv", csv),
            ("UTF-16 with a lone surrogate", b"\xff\xfea\0\0\xdcb\0", "a.csv", UNKNOWN),
            ("UTF-16 with NUL", b"\xff\xfea\0\0\0b\0", "a.csv", UNKNOWN),
            ("UTF-16 without a mark", &little[2..], "a.csv", UNKNOWN),
            ("Latin-1", &latin1(table), "a.csv", csv),
            ("Windows-1252", b"Preis\r\n5 \x80\r\n", "a.csv", csv),
            ("Windows-1251", b"\xc3\xee\xf0\xee\xe4;1\r\n", "a.csv", csv),
            ("Latin-1 in a text", &latin1(table), "a.txt", "text/plain"),
            ("Latin-1 is no JSON", &latin1("{\"größe\": 1}"), "a.json", UNKNOWN),
            ("Latin-1 without a name", &latin1(table), "a", UNKNOWN),
            ("8 bits with NUL", b"a;\xf6\0", "a.csv", UNKNOWN),
        ];
        for (name, head, filename, expected) in cases {
            assert_eq!(detect_media_type(head, filename), expected, "{name}");
        }
        // Binary content with the name of a table.
        for head in [PNG, b"PK\x03\x04\x14\0\0\0", b"\x1f\x8b\x08\0\0\0\0\0", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"] {
            assert_ne!(detect_media_type(head, "a.csv"), csv);
        }
    }

    #[test]
    fn notebook_is_json() {
        assert_type(b"{\"cells\": [], \"nbformat\": 4}", "a.ipynb", "application/json");
        assert_type(PNG, "a.ipynb", "image/png");
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
