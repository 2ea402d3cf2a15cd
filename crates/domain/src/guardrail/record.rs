//! The audit entries of guardrails.

use super::{Guardrail, PlacedGuardrail};
use crate::audit::{Actor, AuditDraft};
use crate::json::Json;

/// Returns the audit entry of a change from one state to another; `None` means that the guardrail does not exist.
pub(super) fn audit_draft(
    actor: &Actor,
    action: &'static str,
    before: Option<&PlacedGuardrail>,
    after: Option<&PlacedGuardrail>,
) -> AuditDraft {
    let states = [("before", before.map(describe)), ("after", after.map(describe))];
    let details = Json::object(states.iter().filter_map(|(name, state)| Some((*name, state.as_ref()?.text()))));
    let id = after.or(before).map(|placed| placed.guardrail.id.to_string());
    AuditDraft::done(actor, action, format!("guardrail {}", id.unwrap_or_default()), details)
}

/// The highest number of characters of a pattern in an audit entry; the guardrail's versions hold the whole pattern.
const MAX_PATTERN_CHARS: usize = 500;

/// Describes a guardrail without its id and its times. Patterns are not secret: readers of the log may read guardrails.
fn describe(placed: &PlacedGuardrail) -> Json {
    let PlacedGuardrail { guardrail, workspace_default } = placed;
    let Guardrail { workspace_id, name, budget, rules, version, .. } = guardrail;
    let text = |text: &str| Json::string(text).text().to_owned();
    let mut members = vec![
        ("name".to_owned(), text(name.as_str())),
        ("workspace_id".to_owned(), text(&workspace_id.to_string())),
        ("workspace_default".to_owned(), workspace_default.to_string()),
        ("version".to_owned(), version.to_string()),
    ];
    if let Some(budget) = budget {
        members.push(("limit_usd".to_owned(), budget.amount.to_string()));
        let reset = budget.reset.map_or("null".to_owned(), |reset| text(reset.as_str()));
        members.push(("reset_interval".to_owned(), reset));
    }
    let mut rules = rules.clone();
    for filter in &mut rules.content_filters {
        if let Some((cut, _)) = filter.pattern.char_indices().nth(MAX_PATTERN_CHARS) {
            filter.pattern.truncate(cut);
            filter.pattern.push('…');
        }
    }
    // Rules hold only strings, booleans and lists of them, so this never fails.
    let rules = serde_json::to_value(rules).ok().and_then(|rules| Json::from(rules).members()).unwrap_or_default();
    members.extend(rules.into_iter().map(|(name, value)| (name, value.text().to_owned())));
    Json::object(members.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
