//! Tests of the content filters.

mod actions;
mod attachments;
mod cancellation;
mod compile_errors;
mod corpus;
mod evasions;
mod labels;
mod large;
mod linear_time;
mod names;
mod nodes;
mod properties;
mod rates;
mod selection;

use std::sync::Arc;

use super::*;
use crate::decision::DecisionDraft;
use crate::guardrail::{BuiltinContentFilter, BuiltinFilter, ContentFilter, GuardrailRules};
use crate::ids::GuardrailId;
use crate::json::Json;
use crate::question::ProviderInput;
use crate::usage::FilterAction;

const ASKED: &str = r#"{"q":{"type":"noul","instructions":"?"}}"#;

fn id(number: u128) -> GuardrailId {
    GuardrailId::from_uuid(uuid::Uuid::from_u128(number))
}

fn rules(builtins: &[(BuiltinFilter, FilterAction)], customs: &[(&str, FilterAction, Option<&str>)]) -> GuardrailRules {
    let filter = |(pattern, action, label): &(&str, FilterAction, Option<&str>)| ContentFilter {
        pattern: (*pattern).to_owned(),
        action: *action,
        label: label.map(str::to_owned),
    };
    GuardrailRules {
        content_filters: customs.iter().map(filter).collect(),
        content_filter_builtins: builtins
            .iter()
            .map(|(slug, action)| BuiltinContentFilter::new(*slug, *action))
            .collect(),
        ..GuardrailRules::default()
    }
}

fn filters(
    builtins: &[(BuiltinFilter, FilterAction)],
    customs: &[(&str, FilterAction, Option<&str>)],
) -> CompiledFilters {
    let rules = rules(builtins, customs);
    CompiledFilters::compile([(id(1), &rules)].into_iter()).unwrap()
}

/// Compiles all built-in filters with the same action.
fn all(action: FilterAction) -> CompiledFilters {
    filters(&BuiltinFilter::ALL.map(|slug| (slug, action)), &[])
}

fn custom(pattern: &str, action: FilterAction, label: Option<&str>) -> CompiledFilters {
    filters(&[], &[(pattern, action, label)])
}

fn provider_input(state: &str, questions: &str) -> Arc<ProviderInput> {
    let draft = DecisionDraft {
        model: Json::parse("\"m\"").ok(),
        questions: Json::parse(questions).ok(),
        state: Json::parse(state).ok(),
        ..DecisionDraft::default()
    };
    draft.check().unwrap().provider_input
}

/// Returns the filtered state.
fn sent(filters: &CompiledFilters, state: &str) -> Result<String, Blocked> {
    let json = Json::parse(state).unwrap();
    let provider_input = ProviderInput::new(provider_input("\"s\"", ASKED).questions.clone(), Some(json));
    filters
        .apply(&Arc::new(provider_input))
        .map(|filtered| filtered.provider_input.state.as_ref().unwrap().text().to_owned())
}

fn questions_sent(filters: &CompiledFilters, questions: &str) -> Result<String, Blocked> {
    filters
        .apply(&provider_input("\"s\"", questions))
        .map(|filtered| filtered.provider_input.questions.json.text().to_owned())
}
