//! The text of an explanation.

use std::fmt::Write as _;

use domain::decision::{EndpointVerdict, Explanation, Verdict};
use domain::usage::Finding;

use crate::output::{escape, table};

/// Returns the text of an explanation for a terminal. Writing to a string cannot fail.
pub fn explanation_text(explanation: &Explanation) -> String {
    let allowed = if explanation.allowed { "yes" } else { "no" };
    let mut text = format!("Allowed: {allowed}\n");
    if let Some(decider) = &explanation.decided_by {
        let guardrail = decider.guardrail_id().map(|id| format!(" (guardrail {id})")).unwrap_or_default();
        let _ = writeln!(text, "Decided by: {}: {}{guardrail}", decider.rule(), escape(&decider.to_string()));
    }
    let guardrails: Vec<String> = explanation.guardrails.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "Guardrails: {}", guardrails.join(", "));
    if let Some(model) = &explanation.model {
        let _ = writeln!(text, "Model: {model}");
    }
    if let Some(bound) = explanation.bound {
        let fits = match explanation.bound_fits {
            Some(true) => ", which fits into every limit",
            Some(false) => ", which exceeds a limit",
            None => "",
        };
        let _ = writeln!(text, "Hold: {bound} USD{fits}");
    }
    if !explanation.endpoints.is_empty() {
        let rows: Vec<[String; 5]> = explanation.endpoints.iter().map(endpoint_row).collect();
        text.push('\n');
        text.push_str(&table(["MODEL", "PROVIDER", "VERDICT", "RULE", "GUARDRAIL"], &rows));
    }
    if !explanation.findings.is_empty() {
        let rows: Vec<[String; 5]> = explanation.findings.iter().map(finding_row).collect();
        text.push('\n');
        text.push_str(&table(["FINDING", "ACTION", "COUNT", "PATH", "GUARDRAIL"], &rows));
    }
    text
}

fn endpoint_row(endpoint: &EndpointVerdict) -> [String; 5] {
    let (rule, guardrail) = match &endpoint.verdict {
        Verdict::Forbidden(forbidden) => (forbidden.rule.to_owned(), forbidden.guardrail_id.to_string()),
        _ => ("-".to_owned(), "-".to_owned()),
    };
    let (model, provider) = (endpoint.model.to_string(), endpoint.endpoint.provider.to_string());
    [model, provider, endpoint.verdict.as_str().to_owned(), rule, guardrail]
}

fn finding_row(finding: &Finding) -> [String; 5] {
    [
        finding.label.clone(),
        finding.action.as_str().to_owned(),
        finding.count.to_string(),
        finding.path.clone(),
        finding.guardrail_id.to_string(),
    ]
}
