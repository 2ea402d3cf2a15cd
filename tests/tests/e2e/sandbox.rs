//! The models of the sandbox, which run in the process.

use anyhow::{Result, ensure};
use tollgate_tests::{Call, Report};

use crate::gateway::{TestGateway, body, providers_toml};

#[tokio::test]
async fn sandbox_answers_without_configuration() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    for model in ["sandbox/decider", "sandbox/decider:free"] {
        let answer = gateway.decide(body(model)).await?;
        ensure!(answer["provider"] == "Tollgate Sandbox", "{answer}");
        ensure!(answer["model"] == model, "{answer}");
        ensure!(answer["usage"]["cost"] == 0, "{answer}");
        ensure!(answer["usage"]["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer}");
    }
    let model = Call::get("/api/v1/model/sandbox/decider").key(&gateway.inference.secret);
    let model = gateway.server.send(&model).await?.ok()?;
    ensure!(model["data"]["pricing"]["prompt"] == "0" && model["data"]["pricing"]["completion"] == "0", "{model}");
    Ok(())
}

#[tokio::test]
async fn error_models_exist_only_when_switched_on() -> Result<()> {
    let gateway = TestGateway::start("").await?;
    let call = Call::get("/api/v1/model/sandbox/error-429").key(&gateway.inference.secret);
    gateway.server.send(&call).await?.envelope(404)?;
    gateway.server.decide(&gateway.inference.secret, body("sandbox/error-429")).await?.envelope(404)?;
    let listed = gateway.instance.run(&["catalogue", "list"]).await?.stdout;
    let listed = String::from_utf8(listed)?;
    ensure!(listed.contains("sandbox/decider") && !listed.contains("sandbox/error-"), "{listed}");
    Ok(())
}

#[tokio::test]
async fn sandbox_is_off_by_default_beside_a_provider() -> Result<()> {
    let nobody = format!("http://{}", tollgate_tests::free_address()?);
    let providers = providers_toml(&nobody, &nobody, 1_000);
    let gateway = TestGateway::start(&providers).await?;
    gateway.server.decide(&gateway.inference.secret, body("sandbox/decider")).await?.envelope(404)?;
    let model = Call::get("/api/v1/model/sandbox/decider").key(&gateway.inference.secret);
    gateway.server.send(&model).await?.envelope(404)?;

    let gateway = TestGateway::start(&format!("[sandbox]\nenabled = true\n{providers}")).await?;
    gateway.decide(body("sandbox/decider")).await?;
    let model = Call::get("/api/v1/model/sandbox/decider").key(&gateway.inference.secret);
    gateway.server.send(&model).await?.ok()?;
    Ok(())
}

#[tokio::test]
async fn error_models_return_their_status() -> Result<()> {
    let gateway = TestGateway::start("[sandbox]\nerrors = true\n").await?;
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
    let on = TestGateway::start("[sandbox]\nerrors = true\n").await?;
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
