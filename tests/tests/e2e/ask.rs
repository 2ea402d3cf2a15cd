//! `tollgate ask` and `tollgate guardrail explain`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tollgate_tests::Call;

use crate::gateway::{QUESTIONS, TestGateway};

#[tokio::test]
async fn ask_sends_one_request_to_the_running_server() -> Result<()> {
    let mut gateway = TestGateway::start("").await?;
    let said = gateway.instance.refused(&["ask", "sandbox/decider", "--question", "Is it?", "--state", "x"]).await?;
    ensure!(said.contains("TOLLGATE_KEY") && said.contains("--key-file"), "{said}");
    gateway.instance.set_env("TOLLGATE_KEY", gateway.inference.secret.clone());
    // The server is found by its socket, although the command is configured with another address.
    gateway.instance.set_env("TOLLGATE__SERVER__LISTEN", "127.0.0.1:9");
    let arguments = ["ask", "sandbox/decider", "--question", "refund=Is it a refund?", "--state", "It smokes."];
    let answer = gateway.instance.json(&arguments).await?;
    ensure!(answer["answers"]["refund"]["type"] == "noul" && answer["usage"]["cost"].is_number(), "{answer}");
    let listed = gateway.instance.json(&["usage", "list"]).await?;
    ensure!(listed["data"].as_array().is_some_and(|records| records.len() == 1), "{listed}");
    let shown = String::from_utf8(gateway.instance.run(&arguments).await?.stdout)?;
    ensure!(shown.contains("refund") && shown.contains(" USD (gen-dec-") && shown.contains(" %"), "{shown}");

    std::fs::write(gateway.instance.path().join("key"), format!("{}\n", gateway.inference.secret))?;
    std::fs::write(
        gateway.instance.path().join("body.json"),
        json!({"questions": {"mood": {"type": "score",
        "instructions": "How angry?", "criteria": ["calm", "furious"]}}, "state": "x"})
        .to_string(),
    )?;
    gateway.instance.set_env("TOLLGATE_KEY", "");
    for options in [
        &["--from", "body.json"][..],
        &["--question", "mood=How?", "--levels", "calm,angry,furious", "--state-file", "body.json"],
        &["--question", "mood=How?", "--options", "calm,furious", "--state", "x"],
    ] {
        let arguments = [&["ask", "sandbox/decider", "--key-file", "key"][..], options].concat();
        let answer = gateway.instance.json(&arguments).await?;
        ensure!(answer["answers"]["mood"].is_object(), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn ask_reports_errors_of_the_server() -> Result<()> {
    let mut gateway = TestGateway::start("").await?;
    gateway.instance.set_env("TOLLGATE_KEY", gateway.inference.secret.clone());
    let arguments = ["ask", "sandbox/decidre", "--question", "Is it?", "--state", "x"];
    let said = gateway.instance.refused(&arguments).await?;
    ensure!(said.starts_with("error: 404: "), "{said}");
    let output = gateway.instance.run(&[&arguments[..], &["--json"]].concat()).await?;
    let envelope: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(output.status.code() == Some(1) && envelope["error"]["code"] == 404, "{envelope}");
    gateway.instance.set_env("TOLLGATE_KEY", "sk-tg-v1-unknown");
    let said = gateway.instance.refused(&arguments).await?;
    ensure!(said.starts_with("error: 401: ") && !said.contains("sk-tg"), "{said}");
    let TestGateway { instance, server, .. } = gateway;
    server.stop().await?;
    let said = instance.refused(&arguments).await?;
    ensure!(said.contains("no response of"), "{said}");
    Ok(())
}

#[tokio::test]
async fn guardrail_explain_shows_what_the_http_api_explains() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let instance = &gateway.instance;
    let record = json!({"name": "g", "ignored_providers": ["sandbox"]});
    std::fs::write(instance.path().join("rules.json"), record.to_string())?;
    let guardrail = instance.guardrail(&["--from", "rules.json"]).await?;
    let body = format!(r#"{{"model":"sandbox/decider","questions":{QUESTIONS},"state":"It smokes."}}"#);
    std::fs::write(instance.path().join("body.json"), &body)?;
    let inner: Value = serde_json::from_str(&body)?;
    let call = Call::post(format!("/api/v1/guardrails/{guardrail}/explain")).key(&gateway.management.secret);
    for key in [None, Some(&gateway.inference.hash)] {
        let request = json!({"body": inner, "key_hash": key});
        let expected = gateway.server.send(&call.clone().json(request.to_string())).await?.ok()?;
        let mut arguments = vec!["guardrail", "explain", &guardrail, "--from", "body.json"];
        arguments.extend(key.iter().flat_map(|key| ["--key", &key[..12]]));
        let explained = instance.json(&arguments).await?;
        ensure!(explained == expected["data"], "{explained} instead of {expected}");
        ensure!(explained["allowed"] == false, "{explained}");
        let shown = String::from_utf8(instance.run(&arguments).await?.stdout)?;
        ensure!(shown.contains("allowed: no") && shown.contains("ignored_providers"), "{shown}");
        ensure!(shown.contains("forbidden"), "{shown}");
    }
    std::fs::write(instance.path().join("bad.json"), r#"{"model":"sandbox/decider"}"#)?;
    let said = instance.refused(&["guardrail", "explain", &guardrail, "--from", "bad.json"]).await?;
    ensure!(said.contains("questions"), "{said}");
    let unknown = "01990000-0000-7000-8000-000000000001";
    let said = instance.refused(&["guardrail", "explain", unknown, "--from", "body.json"]).await?;
    ensure!(said.contains("not found"), "{said}");
    Ok(())
}
