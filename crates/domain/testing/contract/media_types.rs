//! Cases of [`DetectMediaType`].

use std::thread;

use crate::file::DetectMediaType;

suite! {
    /// Every case of the port's contract.
    media_types_cases as media_types_contract over Detector {
        content_decides,
        contradicting_extension_is_ignored,
        extension_distinguishes_equal_contents,
        extension_is_that_of_the_last_segment_in_any_case,
        unknown_content_is_octet_stream,
        every_input_has_a_media_type,
        concurrent_detections_agree,
    }
}

type Detector = DetectMediaType;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const PDF: &[u8] = b"%PDF-1.7\n1 0 obj";
const UNKNOWN: &str = "application/octet-stream";

async fn content_decides(detector: &Detector) {
    for (head, media_type) in [(PNG, "image/png"), (PDF, "application/pdf"), (b"words", "text/plain")] {
        assert_eq!(detector(head, "file"), media_type);
        assert_eq!(detector(head, ""), media_type);
    }
}

async fn contradicting_extension_is_ignored(detector: &Detector) {
    assert_eq!(detector(PNG, "report.csv"), "image/png");
    assert_eq!(detector(PDF, "image.png"), "application/pdf");
    assert_eq!(detector(b"words", "image.png"), "text/plain");
    assert_eq!(detector(b"a,b\0c", "report.csv"), UNKNOWN, "binary content is not CSV");
}

async fn extension_distinguishes_equal_contents(detector: &Detector) {
    assert_eq!(detector(b"a,b\n1,2\n", "report.csv"), "text/csv");
    assert_eq!(detector(b"a,b\n1,2\n", "report.txt"), "text/plain");
}

async fn extension_is_that_of_the_last_segment_in_any_case(detector: &Detector) {
    assert_eq!(detector(b"a,b\n", "out/r.v2/report.CSV"), "text/csv");
    assert_eq!(detector(b"words", "folder.csv/words"), "text/plain");
}

async fn unknown_content_is_octet_stream(detector: &Detector) {
    assert_eq!(detector(b"\x01\x02\xff\xfe", "file"), UNKNOWN);
    assert_eq!(detector(b"\x01\x02\xff\xfe", "report.csv"), UNKNOWN);
    assert_eq!(detector(b"", "file"), UNKNOWN);
}

async fn every_input_has_a_media_type(detector: &Detector) {
    let long = vec![0xc3; 100_000];
    let heads = [PNG, PDF, b"PK\x03\x04", "größe".as_bytes()];
    let many_dots = "n.".repeat(10_000);
    let filenames = ["", ".", "..", "/", "a.", ".csv", "a.\0", "a.\u{202e}gpj", many_dots.as_str()];
    let prefixes = heads.iter().flat_map(|head| (0..head.len()).map(move |end| &head[..end]));
    for head in prefixes.chain([long.as_slice()]) {
        for filename in filenames {
            let media_type = detector(head, filename);
            let parts = media_type.split_once('/');
            assert!(parts.is_some_and(|(kind, of)| !kind.is_empty() && !of.is_empty()), "{media_type:?}");
            assert!(media_type.bytes().all(|byte| byte.is_ascii_graphic()), "{media_type:?} is no header value");
        }
    }
}

async fn concurrent_detections_agree(detector: &Detector) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!((0..100).all(|_| detector(PNG, "a.csv") == "image/png")));
        }
    });
}
