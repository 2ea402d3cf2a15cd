//! Limits on strings, and names of models.

use anyhow::{Context, Result, ensure};
use tollgate_tests::{Report, decisions};

use crate::gateway::{TestGateway, body, body_with};

#[tokio::test]
async fn session_and_user_have_at_most_256_characters() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    for member in ["session_id", "user"] {
        for unit in ["a", "é", "\u{1F511}", r"\u00e9", r"\ud83d\udd11"] {
            let with = |times: usize| body_with(&format!("\"{member}\":\"{}\"", unit.repeat(times)));
            let reply = gateway.server.decide(&gateway.inference.secret, with(257)).await?;
            report.case(&format!("{member}, 257 of {unit}"), reply.error(400, member));
            let reply = gateway.server.decide(&gateway.inference.secret, with(256)).await?;
            report.case(&format!("{member}, 256 of {unit}"), reply.ok());
        }
        let reply = gateway.server.decide(&gateway.inference.secret, body_with(&format!("\"{member}\":7"))).await?;
        report.case(&format!("{member}, a number"), reply.error(400, member));
    }
    report.finish()
}

#[tokio::test]
async fn session_of_body_overrides_header() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = &gateway.inference.secret;
    let long = "h".repeat(257);
    let cases = [
        (body("sandbox/decider"), "from-header".to_owned(), Some("from-header")),
        (body_with(r#""session_id":"from-body""#), "from-header".to_owned(), Some("from-body")),
        (body_with(r#""session_id":"from-body""#), long.clone(), Some("from-body")),
        (body_with(r#""session_id":null"#), "from-header".to_owned(), Some("from-header")),
        (body("sandbox/decider"), "h".repeat(256), Some(&long[..256])),
        (body("sandbox/decider"), long.clone(), None),
        (body_with(r#""session_id":null"#), long.clone(), None),
    ];
    for (body, header, stored) in cases {
        let reply = gateway.server.send(&decisions(secret, &body).header("x-session-id", &header)).await?;
        let Some(stored) = stored else {
            reply.error(400, "x-session-id")?;
            continue;
        };
        let id = reply.ok()?["id"].as_str().context("no id")?.to_owned();
        let usage = gateway.instance.json(&["usage", "show", &id]).await?;
        ensure!(usage["session_id"] == stored, "{stored} was not stored: {usage}");
    }
    // Invalid UTF-8 in the header is ignored.
    let odd = decisions(secret, body("sandbox/decider")).header("x-session-id", b"\xff\xfe");
    ensure!(gateway.server.send(&odd).await?.status < 500);
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn unknown_model_returns_404_with_suggestion() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let secret = &gateway.inference.secret;
    let reply = gateway.server.decide(secret, body("sandbox/decidr")).await?;
    let envelope = reply.envelope(404)?;
    let nearest = envelope["error"]["metadata"]["nearest"].as_array().context("no nearest")?;
    ensure!((1..=3).contains(&nearest.len()), "{envelope}");
    ensure!(nearest.contains(&"sandbox/decider".into()), "{envelope}");

    let long = "a".repeat(5_000);
    for unknown in ["nonsense", "a/b/c", "../../etc/passwd", "sandbox/decider:thinking", "\\u0000", &long, "é/ü", "/"]
    {
        gateway.server.decide(secret, body(unknown)).await?.envelope(404).with_context(|| unknown.to_owned())?;
    }
    gateway.server.ensure_healthy().await
}

#[tokio::test]
async fn model_without_decisions_returns_400() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let rows = r#"[{"id":"acme/talker","canonical_slug":"acme/talker","name":"Acme: Talker","created":1790000000,
        "description":"Talks.","context_length":1000,
        "architecture":{"modality":"text->text","input_modalities":["text"],"output_modalities":["text"],"tokenizer":"Other","instruct_type":null},
        "pricing":{"prompt":"0.000001","completion":"0.000002"},
        "top_provider":{"context_length":1000,"max_completion_tokens":null,"is_moderated":false},
        "per_request_limits":null,"supported_parameters":[]}]"#;
    std::fs::write(gateway.instance.path().join("rows.json"), rows)?;
    gateway.server.decide(&gateway.inference.secret, body("acme/talker")).await?.envelope(404)?;
    gateway.instance.json(&["catalogue", "import", "rows.json"]).await?;
    let reply = crate::catalogue_import::until_decided(&gateway, "acme/talker", 400).await?;
    let envelope = reply.error(400, "acme/talker")?;
    ensure!(envelope["error"]["message"].as_str().is_some_and(|said| said.contains("ecisions")), "{envelope}");
    Ok(())
}
