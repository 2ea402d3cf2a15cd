//! The models of the sandbox, which run in the process.

use anyhow::{Result, ensure};
use tollgate_tests::{Call, Report};

use crate::gateway::{TestGateway, body};

#[tokio::test]
async fn sandbox_answers_without_configuration() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for (model, free) in [("sandbox/decider", false), ("sandbox/decider:free", true)] {
        let answer = gateway.decide(body(model)).await?;
        ensure!(answer["provider"] == "Tollgate Sandbox", "{answer}");
        ensure!(answer["model"] == model, "{answer}");
        let cost = answer["usage"]["cost"].as_f64().unwrap_or(-1.0);
        ensure!((cost == 0.0) == free && cost >= 0.0, "{answer}");
        ensure!(answer["usage"]["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn error_models_return_their_status() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let mut report = Report::default();
    for (status, message) in [
        (402, ""),
        (403, ""),
        (429, "Rate limit exceeded"),
        (502, "Provider returned error"),
        (503, "Service temporarily unavailable"),
        (524, "Request timed out. Please try again later."),
        (529, "Provider returned error"),
    ] {
        for path in ["/api/v1/api/alpha/decisions", "/api/alpha/decisions"] {
            let call = Call::post(path).key(&gateway.inference.secret).json(body(&format!("sandbox/error-{status}")));
            let reply = gateway.server.send(&call).await?;
            report.case(&format!("{path} {status}"), reply.error(status, message));
        }
    }
    gateway.server.ensure_healthy().await?;
    report.finish()
}

#[tokio::test]
async fn sandbox_can_be_disabled() -> Result<()> {
    let count = Call::get("/api/v1/models/count?output_modalities=all");
    let on = TestGateway::start("").await?;
    let with = on.server.send(&count.clone().key(&on.inference.secret)).await?.ok()?["data"]["count"].clone();
    on.server.send(&Call::get("/api/v1/model/sandbox/decider").key(&on.inference.secret)).await?.ok()?;

    let off = TestGateway::start("[sandbox]\nenabled = false\n").await?;
    let without = off.server.send(&count.key(&off.inference.secret)).await?.ok()?["data"]["count"].clone();
    ensure!(with.as_u64() == without.as_u64().map(|count| count + 9), "{with} and {without}");
    for model in ["decider", "decider:free", "error-429"] {
        let call = Call::get(format!("/api/v1/model/sandbox/{model}")).key(&off.inference.secret);
        off.server.send(&call).await?.envelope(404)?;
        off.server.decide(&off.inference.secret, body(&format!("sandbox/{model}"))).await?.envelope(404)?;
    }
    Ok(())
}
