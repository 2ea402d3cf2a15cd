//! Compressed bodies, on every route with a JSON body.

use std::io::Write;

use super::client::Reply;
use super::gateway::{BASE, Caller, Gateway, Setup, answer, guardrail};

const BODY: &str = r#"{"model":"acme/judge","state":"s","questions":{"q":{"type":"noul","instructions":"?"}}}"#;
const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.5}}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

async fn post(gateway: &Gateway, path: &str, encoding: &str, body: &[u8]) -> Reply {
    let bearer = Caller::Inference.bearer();
    let headers = [("Authorization", &*bearer), ("Content-Type", "application/json"), ("Content-Encoding", encoding)];
    gateway.send("POST", path, &headers, body).await
}

#[tokio::test]
async fn compressed_bodies_are_accepted_on_every_route() {
    let paths =
        ["/api/alpha/decisions", "/api/v1/api/alpha/decisions", "/v1/systemone", "/api/v1/systemone", "/v1/decisions"];
    let gateway = Setup::answering((0..15).map(|_| answer(ANSWERS))).await.start();
    for path in paths {
        for (encoding, body) in
            [("gzip", gzip(BODY.as_bytes())), ("zstd", zstd(BODY.as_bytes())), ("identity", BODY.as_bytes().to_vec())]
        {
            let reply = post(&gateway, path, encoding, &body).await;
            assert_eq!(reply.status, 200, "{path} {encoding} {}", String::from_utf8_lossy(&reply.body));
        }
    }
    let path = format!("/guardrails/{}/assignments/keys", guardrail());
    let hashes = format!(r#"{{"key_hashes":["{}"]}}"#, Caller::Inference.hash());
    let headers = [("Content-Type", "application/json"), ("Content-Encoding", "zstd")];
    let reply = gateway.post(Caller::Management, &path, &headers, &zstd(hashes.as_bytes())).await;
    assert_eq!(reply.json()["assigned_count"], 1);
}

#[tokio::test]
async fn large_compressed_body_is_accepted() {
    let mut setup = Setup::answering([answer(ANSWERS), answer(ANSWERS)]).await;
    setup.settings.max_json_bytes = 4 << 20;
    let gateway = setup.start();
    let text: String =
        (0..400_000_u32).map(|i| char::from(b'a' + (i.wrapping_mul(2_654_435_761) >> 27) as u8 % 26)).collect();
    let body = BODY.replace("\"s\"", &format!("\"{text}\""));
    for (encoding, packed) in [("gzip", gzip(body.as_bytes())), ("zstd", zstd(body.as_bytes()))] {
        assert_eq!(post(&gateway, "/api/alpha/decisions", encoding, &packed).await.status, 200, "{encoding}");
    }
}

#[tokio::test]
async fn decompression_bombs_return_413() {
    let mut setup = Setup::new().await;
    setup.settings.max_json_bytes = 1 << 20;
    let gateway = setup.start();
    let huge = vec![b' '; 64 << 20];
    for (encoding, packed) in [("gzip", gzip(&huge)), ("zstd", zstd(&huge))] {
        assert!(packed.len() < 1 << 20, "{encoding}");
        let reply = post(&gateway, "/api/alpha/decisions", encoding, &packed).await;
        assert_eq!(reply.expect_error(413), "Request payload too large", "{encoding}");
    }
    // The limit itself is accepted, and one byte more is rejected.
    for (bytes, status) in [(1 << 20, 400), ((1 << 20) + 1, 413)] {
        let reply = post(&gateway, "/api/alpha/decisions", "zstd", &zstd(&vec![b' '; bytes])).await;
        reply.expect_error(status);
    }
    // A window of 128 MiB for a body of two bytes.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(b"{}").unwrap();
    encoder.flush().unwrap();
    let reply = post(&gateway, "/api/alpha/decisions", "zstd", &encoder.finish().unwrap()).await;
    assert!(reply.expect_error(400).starts_with("The body is sent as zstd and "));
}

#[tokio::test]
async fn malformed_or_unknown_encodings_are_rejected() {
    let gateway = Setup::new().await.start();
    for (encoding, packed) in [("gzip", gzip(BODY.as_bytes())), ("zstd", zstd(BODY.as_bytes()))] {
        let cut = post(&gateway, "/api/alpha/decisions", encoding, &packed[..packed.len() / 2]).await;
        assert_eq!(cut.expect_error(400), format!("The body is sent as {encoding} and is cut short"));
        let mut corrupt = packed.clone();
        corrupt[0] ^= 0xff;
        let corrupt = post(&gateway, "/api/alpha/decisions", encoding, &corrupt).await;
        assert_eq!(corrupt.expect_error(400), format!("The body is sent as {encoding} and cannot be unpacked"));
        assert!(post(&gateway, "/api/alpha/decisions", encoding, b"").await.expect_error(400).contains("empty"));
    }
    for encoding in ["br", "deflate", "gzip, zstd", "compress"] {
        let reply = post(&gateway, &format!("{BASE}/api/alpha/decisions"), encoding, BODY.as_bytes()).await;
        reply.expect_error(415);
        assert_eq!(reply.header("accept-encoding"), Some("zstd, gzip"));
    }
}
