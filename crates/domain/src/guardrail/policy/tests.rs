use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::guardrail::fixtures::{apply_draft, endpoint, guardrail_id, row};
use crate::guardrail::{BuiltinContentFilter, BuiltinFilter, GuardrailRules};
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::routing::{DataPolicy, Endpoint};
use crate::usage::FilterAction;

fn numbered(number: u64, record: &str) -> Guardrail {
    Guardrail { id: guardrail_id(number), ..apply_draft(record).unwrap() }
}

fn candidate(model: &str, provider: &str) -> Candidate {
    let endpoint = Endpoint { data_policy: DataPolicy { zdr: false, collects: false }, ..endpoint(model, provider) };
    Candidate {
        model: model.parse().unwrap(),
        endpoint: Arc::new(endpoint),
        prices: TokenPrices { prompt: Price::ZERO, completion: Price::ZERO },
        is_priced: true,
    }
}

#[test]
fn policy_intersects_lists_and_names_forbidding_guardrail() {
    let policy = Policy::compile(vec![
        numbered(1, r#"{"allowed_models":["acme/judge","rival/oracle"],"ignored_providers":["typesafe"]}"#),
        numbered(2, r#"{"allowed_models":["acme/judge","openai/decider"]}"#),
    ]);
    let policy = policy.unwrap();
    let catalogue = CatalogueSnapshot::build(crate::guardrail::fixtures::rows());
    let permits = |model: &str, provider: &str| {
        let refused = policy.permits(&candidate(model, provider), &catalogue);
        refused.map_err(|refused| (refused.guardrail_id, refused.rule))
    };
    assert_eq!(permits("acme/judge", "mirror"), Ok(()));
    assert_eq!(permits("acme/judge", "typesafe"), Err((guardrail_id(1), "ignored_providers")));
    assert_eq!(permits("rival/oracle", "mirror"), Err((guardrail_id(2), "allowed_models")));
    assert_eq!(permits("openai/decider", "mirror"), Err((guardrail_id(1), "allowed_models")));
}

#[test]
fn policy_enforces_zero_retention_of_either_guardrail() {
    let catalogue = CatalogueSnapshot::build(Vec::new());
    let keeps = candidate("openai/decider", "typesafe");
    let rule = |first: &str, second: &str| {
        let policy = Policy::compile(vec![numbered(1, first), numbered(2, second)]).unwrap();
        policy.permits(&keeps, &catalogue).err().map(|refused| refused.guardrail_id)
    };
    let (yes, no) = (r#"{"enforce_zdr_openai":true}"#, r#"{"enforce_zdr_openai":false,"enforce_zdr":true}"#);
    assert_eq!(rule(yes, no), Some(guardrail_id(1)));
    assert_eq!(rule(no, yes), Some(guardrail_id(2)));
    assert_eq!(rule(no, no), None);
}

#[test]
fn policy_drops_duplicate_guardrail() {
    let twice = numbered(1, r#"{"limit_usd":5,"reset_interval":"daily"}"#);
    let policy = Policy::compile(vec![twice.clone(), numbered(2, "{}"), twice.clone()]).unwrap();
    assert_eq!(policy.ids(), [guardrail_id(1), guardrail_id(2)]);
    assert_eq!(policy.guardrails()[0], twice);
    assert!(policy.limits_money());
    assert!(!Policy::compile(vec![numbered(2, "{}")]).unwrap().limits_money());
}

#[test]
fn policy_applies_filters_of_both_guardrails() {
    let with = |number, slug, action| {
        let rules = GuardrailRules {
            content_filter_builtins: vec![BuiltinContentFilter::new(slug, action)],
            ..GuardrailRules::default()
        };
        Guardrail { rules, ..numbered(number, "{}") }
    };
    let policy = Policy::compile(vec![
        with(1, BuiltinFilter::Email, FilterAction::Redact),
        with(2, BuiltinFilter::Ssn, FilterAction::Flag),
    ]);
    let questions = crate::json::Json::parse(r#"{"q":{"type":"noul","instructions":"?"}}"#).ok();
    let state = crate::json::Json::parse(r#""ada@example.org 536-90-4399""#).ok();
    let model = crate::json::Json::parse(r#""m""#).ok();
    let draft = crate::decision::DecisionDraft { model, questions, state, ..Default::default() };
    let filtered = policy.unwrap().filter(&draft.check().unwrap().provider_input).unwrap();
    let found: HashSet<(GuardrailId, String)> =
        filtered.findings.iter().map(|finding| (finding.guardrail_id, finding.label.clone())).collect();
    assert_eq!(found, HashSet::from([(guardrail_id(1), "EMAIL".to_owned()), (guardrail_id(2), "SSN".to_owned())]));
    assert_eq!(filtered.provider_input.state.as_ref().unwrap().text(), r#""[EMAIL] 536-90-4399""#);
}

const MODELS: [&str; 4] = ["acme/one", "acme/two", "rival/three", "rival/four"];
const PROVIDERS: [&str; 3] = ["here", "there", "elsewhere"];

#[derive(Debug, Clone)]
struct Lists {
    allowed_models: Option<Vec<usize>>,
    ignored_models: Option<Vec<usize>>,
    allowed_providers: Option<Vec<usize>>,
    ignored_providers: Option<Vec<usize>>,
}

fn lists() -> impl Strategy<Value = Lists> {
    let some = |of: usize| proptest::option::of(proptest::collection::vec(0..of, 1..4));
    (some(4), some(4), some(3), some(3)).prop_map(
        |(allowed_models, ignored_models, allowed_providers, ignored_providers)| Lists {
            allowed_models,
            ignored_models,
            allowed_providers,
            ignored_providers,
        },
    )
}

impl Lists {
    /// Evaluates the record naively.
    fn permits(&self, model: usize, provider: usize) -> bool {
        let allowed = |list: &Option<Vec<usize>>, one| list.as_ref().is_none_or(|list| list.contains(&one));
        let ignored = |list: &Option<Vec<usize>>, one| list.as_ref().is_some_and(|list| list.contains(&one));
        allowed(&self.allowed_models, model)
            && !ignored(&self.ignored_models, model)
            && allowed(&self.allowed_providers, provider)
            && !ignored(&self.ignored_providers, provider)
    }

    fn guardrail(&self, number: u64) -> Guardrail {
        let names = |list: &Option<Vec<usize>>, of: &[&str], more: &str| {
            list.as_ref().map(|list| list.iter().map(|place| format!("{}{more}", of[*place])).collect())
        };
        let rules = GuardrailRules {
            allowed_models: names(&self.allowed_models, &MODELS, "-2026"),
            ignored_models: names(&self.ignored_models, &MODELS, "-2026"),
            allowed_providers: names(&self.allowed_providers, &PROVIDERS, ""),
            ignored_providers: names(&self.ignored_providers, &PROVIDERS, ""),
            ..GuardrailRules::default()
        };
        Guardrail { rules, ..numbered(number, "{}") }
    }
}

proptest! {
    #[test]
    fn policy_permits_what_both_guardrails_permit(first in lists(), second in lists()) {
        let catalogue = CatalogueSnapshot::build(MODELS.iter().map(|id| row(id, &format!("{id}-2026"))).collect());
        let policy = Policy::compile(vec![first.guardrail(1), second.guardrail(2)]).unwrap();
        for (model, id) in MODELS.iter().enumerate() {
            for (provider, slug) in PROVIDERS.iter().enumerate() {
                let expected = first.permits(model, provider) && second.permits(model, provider);
                let verdict = policy.permits(&candidate(id, slug), &catalogue);
                prop_assert_eq!(verdict.is_ok(), expected, "{} at {}: {:?}", id, slug, verdict);
                if let Err(refused) = verdict {
                    let by_first = refused.guardrail_id == guardrail_id(1);
                    let named = if by_first { &first } else { &second };
                    prop_assert!(!named.permits(model, provider));
                    prop_assert!(by_first || first.permits(model, provider), "the workspace's is named first");
                }
            }
        }
    }
}
