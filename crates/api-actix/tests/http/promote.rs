//! Promotion of a container file to a document.

use super::gateway::{CONTAINER, Caller, Setup};
use api_actix::WireNames;

fn path(container: &str, file_id: &str) -> String {
    format!("/containers/{container}/files/{file_id}/promote")
}

#[tokio::test]
async fn promoted_file_has_client_shape() {
    let setup = Setup::new().await;
    let file = setup.put("out/report.csv", 9).await;
    let gateway = setup.start();
    let promote = async |headers: &[(&str, &str)]| {
        let reply = gateway.post(Caller::Inference, &path(CONTAINER, &file), headers, b"ignored").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let native = promote(&[]).await;
    assert!(native["id"].as_str().unwrap().starts_with("tgfile_"));
    let expected = serde_json::json!({
        "_shape": "native", "id": native["id"], "type": "file", "filename": "out/report.csv", "mime_type": "text/csv",
        "size_bytes": 9, "created_at": "2026-01-01T00:00:00.000Z", "downloadable": true,
    });
    assert_eq!(native, expected);
    assert_eq!(
        promote(&[("anthropic-version", "2023-06-01"), ("X-Stainless-Lang", "python")]).await["_shape"],
        "vendor_a"
    );
    let vendor_b = promote(&[("X-Stainless-Lang", "python")]).await;
    let expected = serde_json::json!({
        "_shape": "vendor_b", "id": vendor_b["id"], "object": "file", "bytes": 9, "created_at": 1_767_225_600,
        "filename": "out/report.csv", "purpose": "assistants_output", "status": "processed",
    });
    assert_eq!(vendor_b, expected);
    let openai = promote(&[("User-Agent", "OpenAI/Python 2.0"), ("X-Stainless-Lang", "python")]).await;
    assert_eq!((&openai["_shape"], &openai["object"]), (&"openai".into(), &"file".into()));
    let agent = "speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter";
    assert_eq!(promote(&[("User-Agent", agent)]).await["_shape"], "openrouter");
    assert_eq!(promote(&[("X-OpenRouter-Title", "a"), ("anthropic-version", "1")]).await["_shape"], "anthropic");
}

#[tokio::test]
async fn shape_literals_follow_profile() {
    let mut setup = Setup::new().await;
    setup.settings.wire_names = WireNames::OpenRouter;
    let file = setup.put("a", 1).await;
    let gateway = setup.start();
    for (header, shape) in [("X-None", "openrouter"), ("anthropic-version", "anthropic"), ("X-Stainless-OS", "openai")]
    {
        let reply = gateway.post(Caller::Inference, &path(CONTAINER, &file), &[(header, "1")], b"").await;
        assert_eq!(reply.json()["_shape"], shape);
    }
}

#[tokio::test]
async fn invalid_ids_are_rejected_with_reason() {
    let gateway = Setup::new().await.start();
    // base64url of `../x`, `/etc`, `a\b`, NUL, `a//b`; then padding, a non-canonical tail, other alphabets.
    for file_id in [
        "cfile_Li4veA",
        "cfile_L2V0Yw",
        "cfile_YVxi",
        "cfile_AA",
        "cfile_YS8vYg",
        "cfile_YQ==",
        "cfile_YR",
        "cfile_Y+%2Fx",
        "cfile_",
        "file_YQ",
        "cfile_%2e%2e",
        "%2e%2e",
        "cfile_YQ%00",
        "cfile_..%2F..%2Fetc",
        "cfile_%ff",
        "cfile_YQ%252e",
    ] {
        let reply = gateway.post(Caller::Inference, &path(CONTAINER, file_id), &[], b"").await;
        assert!(reply.expect_error(400).starts_with("file_id "), "{file_id}");
    }
    for container in ["%2e%2e", "a%2Fb", "a.b", "%ff", "a%20b"] {
        let reply = gateway.post(Caller::Inference, &path(container, "cfile_YQ"), &[], b"").await;
        assert!(reply.expect_error(400).starts_with("container_id "), "{container}");
    }
}

#[tokio::test]
async fn containers_of_other_workspaces_return_404() {
    let setup = Setup::new().await;
    let file = setup.put("a", 1).await;
    let gateway = setup.start();
    for (caller, container, file) in [
        (Caller::OfOtherWorkspace, CONTAINER, file.as_str()),
        (Caller::Inference, "sess_one-r1", &file),
        (Caller::Inference, CONTAINER, "cfile_Yg"),
    ] {
        assert_eq!(
            gateway.post(caller, &path(container, file), &[], b"").await.expect_error(404),
            "Resource not found"
        );
    }
}

#[tokio::test]
async fn size_limits_are_reported_in_bytes() {
    let setup = Setup::new().await;
    let (over, at, small) = (setup.put("over", 101).await, setup.put("at", 100).await, setup.put("small", 51).await);
    let gateway = setup.start();
    let promote = async |file: &str| gateway.post(Caller::Inference, &path(CONTAINER, file), &[], b"").await;
    let reply = promote(&over).await;
    assert_eq!(reply.expect_error(413), "Request payload too large");
    assert_eq!(reply.json()["error"]["metadata"]["file_bytes"], 101);
    assert_eq!(reply.json()["error"]["metadata"]["max_file_bytes"], 100);
    assert_eq!(reply.json()["user_id"], "owner-1");
    assert_eq!(promote(&at).await.status, 200);
    let reply = promote(&small).await;
    reply.expect_error(403);
    let metadata = &reply.json()["error"]["metadata"];
    assert_eq!(
        (&metadata["quota_bytes"], &metadata["used_bytes"], &metadata["file_bytes"]),
        (&150.into(), &100.into(), &51.into())
    );
}

#[tokio::test]
async fn retry_with_idempotency_key_returns_first_document() {
    let setup = Setup::new().await;
    let (file, other) = (setup.put("a", 1).await, setup.put("b", 1).await);
    let gateway = setup.start();
    let first = gateway.post(Caller::Inference, &path(CONTAINER, &file), &[("Idempotency-Key", "k")], b"").await;
    let headers = [("Idempotency-Key", "k"), ("anthropic-version", "1")];
    let second = gateway.post(Caller::Inference, &path(CONTAINER, &file), &headers, b"").await;
    assert_eq!(first.json()["id"], second.json()["id"]);
    assert_eq!(second.json()["_shape"], "vendor_a");
    for (file, headers) in [
        (&other, &[("Idempotency-Key", "k")][..]),
        (&file, &[("Idempotency-Key", "k"), ("Idempotency-Key", "k")]),
        (&file, &[("Idempotency-Key", "é")]),
        (&file, &[("Idempotency-Key", "")]),
    ] {
        let reply = gateway.post(Caller::Inference, &path(CONTAINER, file), headers, b"").await;
        assert!(reply.expect_error(400).contains("Idempotency-Key"));
    }
}
