//! `tollgate guardrail explain`

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use api_actix::{ExplanationView, read_decision_request};
use domain::decision::ExplainGuardrailError;

use super::Context;
use super::input::read_input;
use super::references::find_key;
use crate::view::explanation_text;
use crate::wiring::explain_guardrail;

/// Explains what a guardrail would do with a request. Nothing is sent, held or charged.
pub async fn run(context: &Context, id: &str, from: &str, key: Option<&str>) -> anyhow::Result<ExitCode> {
    let (body, name) = read_input(from)?;
    let request = read_decision_request(&body, context.config.limits.draft_bounds)
        .map_err(|fault| anyhow!("{name} cannot be used: {fault}"))?;
    let stores = context.stores_with_folded_journals().await?;
    let key = match key {
        Some(key) => Some(find_key(&stores, key).await?.to_string()),
        None => None,
    };
    let explain = explain_guardrail(&context.config, &stores).await?;
    let explanation = explain.execute_for_operator(id, key.as_deref(), &request).await;
    let explanation = explanation.map_err(|error| match error {
        ExplainGuardrailError::UnknownGuardrail => anyhow!("guardrail {id} not found"),
        other => other.into(),
    });
    let explanation = explanation.context("the request cannot be explained")?;
    let view = ExplanationView::new(&explanation);
    context.output.show(&view, || explanation_text(&explanation))?;
    Ok(ExitCode::SUCCESS)
}
