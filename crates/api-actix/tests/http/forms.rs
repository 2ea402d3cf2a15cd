//! System One requests as forms: one JSON part and one part for each image.

use std::sync::Arc;

use domain::question::Attachments;
use domain::routing::{AttachmentForm, Endpoint};
use domain::testing::ScriptedProvider;

use super::client::Reply;
use super::gateway::{Caller, Gateway, Setup, answer, endpoint};

const ANSWERS: &str = r#"{"q":{"type":"noul","noul":0.5}}"#;
const REQUEST: &str = r#"{"model":"acme/judge","state":"<image:1>","questions":{"q":{"type":"noul","instructions":"?"}},
    "assets":{"<image:1>":{"type":"image","part":"asset-0"}}}"#;
const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\r\n--not a boundary\0\xff";

fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (disposition, media_type, data) in parts {
        body.extend_from_slice(
            format!("--0123456789abcdef\r\nContent-Disposition: form-data; {disposition}\r\n").as_bytes(),
        );
        body.extend_from_slice(format!("Content-Type: {media_type}\r\n\r\n").as_bytes());
        body.extend_from_slice(data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--0123456789abcdef--\r\n");
    body
}

fn whole() -> Vec<u8> {
    form(&[
        ("name=\"request\"", "application/json", REQUEST.as_bytes()),
        ("name=\"asset-0\"; filename=\"asset-0\"", "image/png", IMAGE),
    ])
}

async fn post(gateway: &Gateway, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let bearer = Caller::Inference.bearer();
    let own = [("Authorization", &*bearer), ("Content-Type", "multipart/form-data; boundary=0123456789abcdef")];
    gateway.send("POST", path, &[&own, headers].concat(), body).await
}

async fn taking_assets(provider: &ScriptedProvider) -> Gateway {
    let endpoints = vec![Endpoint { attachments: AttachmentForm::Assets, ..endpoint("first") }, endpoint("second")];
    Setup { provider: Arc::new(provider.clone()), endpoints, ..Setup::new().await }.start()
}

#[tokio::test]
async fn images_are_sent_to_supporting_endpoint() {
    let provider = ScriptedProvider::new((0..4).map(|_| answer(ANSWERS)));
    let gateway = taking_assets(&provider).await;
    let packed = zstd::encode_all(&whole()[..], 3).unwrap();
    let zstd = [("Content-Encoding", "zstd")];
    for (path, headers, body) in [
        ("/v1/systemone", &[][..], whole()),
        ("/api/v1/systemone", &zstd, packed),
        ("/api/alpha/decisions", &[], whole()),
        ("/api/v1/api/alpha/decisions", &[], whole()),
    ] {
        let reply = post(&gateway, path, headers, &body).await;
        assert_eq!(reply.status, 200, "{path} {}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.header("x-provider-name"), Some("The first"));
    }
    for call in provider.calls() {
        let Attachments::Assets(assets) = &call.provider_input.attachments else {
            panic!("{:?}", call.provider_input.attachments)
        };
        assert_eq!((&*assets[0].name, &*assets[0].data), ("<image:1>", IMAGE));
        assert_eq!(assets[0].media_type.as_deref(), Some("image/png"));
    }
}

#[tokio::test]
async fn images_are_rejected_when_no_endpoint_supports_them() {
    let gateway = Setup::answering([answer(ANSWERS)]).await.start();
    let reply = post(&gateway, "/v1/systemone", &[], &whole()).await;
    let message = reply.expect_error_in_any_format(400);
    assert!(message.starts_with("no endpoint of acme/judge takes "), "{message}");
}

#[tokio::test]
async fn malformed_forms_are_rejected() {
    let gateway = taking_assets(&ScriptedProvider::new([])).await;
    let request = ("name=request", "application/json", REQUEST.as_bytes());
    let asset = ("name=asset-0", "image/png", IMAGE);
    for (body, fault) in [
        (b"{}".to_vec(), "does not begin with its boundary"),
        (whole()[..100].to_vec(), "ends before its last boundary"),
        (form(&[asset]), "no part named request"),
        (form(&[request, asset, asset]), "two parts of the body have one name"),
        (form(&[("name=request", "text/plain", b"{}"), asset]), "is not application/json"),
        (form(&[request]), "names no part of the body"),
        (form(&[request, asset, ("name=other", "image/png", IMAGE)]), "does not name every part"),
        (form(&[("name=request", "application/json", b""), asset]), "empty"),
        (form(&[("name=request", "application/json", b"{"), asset]), "not valid JSON"),
    ] {
        let reply = post(&gateway, "/api/alpha/decisions", &[], &body).await;
        let message = reply.expect_error(400);
        assert!(message.contains(fault), "{fault}: {message}");
        assert_eq!(post(&gateway, "/v1/systemone", &[], &body).await.expect_error_in_any_format(422), message);
    }
}

#[tokio::test]
async fn form_is_limited_as_a_whole_and_accepted_only_on_system_one_paths() {
    let mut setup = Setup::new().await;
    setup.settings.max_json_bytes = 1_000;
    let gateway = setup.start();
    let large =
        form(&[("name=request", "application/json", REQUEST.as_bytes()), ("name=asset-0", "image/png", &[7; 900])]);
    post(&gateway, "/api/alpha/decisions", &[], &large).await.expect_error(413);
    for path in ["/v1/decisions", "/api/v1/decisions", "/v1beta/decisions"] {
        let message = post(&gateway, path, &[], &whole()).await.expect_error_in_any_format(400);
        assert_eq!(message, "Content-Type must be application/json");
    }
}
