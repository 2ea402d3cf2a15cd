mod imports;

use std::sync::Arc;

use rstest::rstest;

use crate::guardrail::fixtures::{apply_draft, endpoint, row, rows};
use crate::guardrail::{Guardrail, GuardrailRules, Policy};
use crate::model::CatalogueSnapshot;
use crate::money::Price;
use crate::pricing::TokenPrices;
use crate::routing::{Candidate, DataPolicy, Endpoint};

fn candidate(model: &str, provider: &str) -> Candidate {
    let endpoint = Endpoint { data_policy: DataPolicy { zdr: false, collects: false }, ..endpoint(model, provider) };
    Candidate {
        model: model.parse().unwrap(),
        endpoint: Arc::new(endpoint),
        prices: TokenPrices { prompt: Price::ZERO, completion: Price::ZERO },
        is_priced: true,
    }
}

fn with_policy(candidate: Candidate, zdr: bool, collects: bool) -> Candidate {
    let endpoint = Endpoint { data_policy: DataPolicy { zdr, collects }, ..(*candidate.endpoint).clone() };
    Candidate { endpoint: Arc::new(endpoint), ..candidate }
}

fn at_price(candidate: Candidate, prompt: &str, completion: &str) -> Candidate {
    let prices = TokenPrices { prompt: prompt.parse().unwrap(), completion: completion.parse().unwrap() };
    Candidate { prices, ..candidate }
}

fn snapshot() -> CatalogueSnapshot {
    CatalogueSnapshot::build(rows())
}

/// Returns the rule that forbids the candidate.
fn forbidding(guardrail: &Guardrail, candidate: &Candidate, catalogue: &CatalogueSnapshot) -> Option<&'static str> {
    let policy = Policy::compile(vec![guardrail.clone()]).unwrap();
    let refused = policy.permits(candidate, catalogue).err();
    refused.map(|refused| {
        assert_eq!(refused.guardrail_id, guardrail.id);
        refused.rule
    })
}

fn forbids(record: &str, candidate: &Candidate) -> Option<&'static str> {
    forbidding(&apply_draft(record).unwrap(), candidate, &snapshot())
}

#[test]
fn guardrail_without_rules_permits_everything() {
    for candidate in [candidate("acme/judge", "mirror"), candidate("sandbox/decider", "sandbox")] {
        assert_eq!(forbids("{}", &with_policy(candidate, false, true)), None);
    }
}

#[rstest]
#[case::the_model("acme/judge", None, Some("ignored_models"))]
#[case::its_variant_shares_the_slug("acme/judge:free", None, Some("ignored_models"))]
#[case::another("rival/oracle", Some("allowed_models"), None)]
#[case::the_sandbox("sandbox/decider", Some("allowed_models"), None)]
fn models_are_matched_by_canonical_slug(
    #[case] model: &str,
    #[case] allowed: Option<&str>,
    #[case] ignored: Option<&str>,
) {
    // The list may use any name of the model.
    for name in ["acme/judge", "acme/judge:free", "acme/judge-next", "~acme/judge-latest", "judge"] {
        let candidate = candidate(model, "mirror");
        assert_eq!(forbids(&format!(r#"{{"allowed_models":["{name}"]}}"#), &candidate), allowed, "{name}");
        assert_eq!(forbids(&format!(r#"{{"ignored_models":["{name}"]}}"#), &candidate), ignored, "{name}");
    }
}

#[test]
fn sandbox_models_are_matched_without_a_catalogue_row() {
    let sandbox = candidate("sandbox/decider", "sandbox");
    assert_eq!(forbids(r#"{"ignored_models":["sandbox/decider"]}"#, &sandbox), Some("ignored_models"));
    assert_eq!(forbids(r#"{"allowed_models":["sandbox/decider"]}"#, &sandbox), None);
    let allowed = apply_draft(r#"{"allowed_models":["sandbox/decider"]}"#).unwrap();
    let shown = CatalogueSnapshot::build([rows(), vec![row("sandbox/decider", "sandbox/decider")]].concat());
    assert_eq!(forbidding(&allowed, &sandbox, &shown), None);
}

#[test]
fn providers_are_matched_by_slug() {
    let (one, two) = (candidate("acme/judge", "typesafe"), candidate("acme/judge", "mirror"));
    let allowed = r#"{"allowed_providers":["typesafe"]}"#;
    assert_eq!((forbids(allowed, &one), forbids(allowed, &two)), (None, Some("allowed_providers")));
    let ignored = r#"{"ignored_providers":["typesafe"]}"#;
    assert_eq!((forbids(ignored, &one), forbids(ignored, &two)), (Some("ignored_providers"), None));
}

#[test]
fn ban_survives_slug_change_and_permission_follows_former_slug() {
    let banned = apply_draft(r#"{"ignored_models":["acme/judge"]}"#).unwrap();
    let allowed = apply_draft(r#"{"allowed_models":["acme/judge"]}"#).unwrap();
    assert_eq!(banned.rules.ignored_models.as_deref().unwrap(), ["acme/judge-20260901"]);
    let mut dated = row("acme/judge", "acme/judge-20270101");
    let judge = candidate("acme/judge", "mirror");
    let renamed = CatalogueSnapshot::build(vec![dated.clone()]);
    assert_eq!(forbidding(&allowed, &judge, &renamed), Some("allowed_models"), "no record links the two models");
    dated.renamed_from = vec!["acme/judge-20260901".parse().unwrap()];
    let renamed = CatalogueSnapshot::build(vec![dated.clone()]);
    assert_eq!(forbidding(&banned, &judge, &renamed), Some("ignored_models"));
    assert_eq!(forbidding(&allowed, &judge, &renamed), None);
    // Another model has the former name now, so the permission does not apply to this model, and the ban stays.
    let taken = CatalogueSnapshot::build(vec![dated, row("acme/other", "acme/judge-20260901")]);
    assert_eq!(forbidding(&allowed, &judge, &taken), Some("allowed_models"));
    assert_eq!(forbidding(&banned, &judge, &taken), Some("ignored_models"));
    let gone = CatalogueSnapshot::build(Vec::new());
    assert_eq!(forbidding(&allowed, &judge, &gone), Some("allowed_models"));
}

#[test]
fn ban_by_id_holds_after_slug_change() {
    let rules = GuardrailRules { ignored_models: Some(vec!["acme/judge".to_owned()]), ..GuardrailRules::default() };
    let banned = Guardrail { rules, ..apply_draft("{}").unwrap() };
    for model in ["acme/judge", "acme/judge:free"] {
        assert_eq!(forbidding(&banned, &candidate(model, "mirror"), &snapshot()), Some("ignored_models"), "{model}");
    }
}

#[rstest]
#[case("anthropic/m", "enforce_zdr_anthropic")]
#[case("openai/m", "enforce_zdr_openai")]
#[case("google/m", "enforce_zdr_google")]
#[case("x-ai/m", "enforce_zdr_xai")]
#[case("acme/m", "enforce_zdr_other")]
#[case("sandbox/m", "enforce_zdr_other")]
fn zero_retention_depends_on_the_author(#[case] model: &str, #[case] own: &'static str) {
    let keeps = with_policy(candidate(model, "mirror"), false, false);
    let keeps_nothing = with_policy(candidate(model, "mirror"), true, false);
    let groups = ["anthropic", "openai", "google", "xai", "other"].map(|group| format!("enforce_zdr_{group}"));
    for flag in &groups {
        let expected = (flag == own).then_some(own);
        assert_eq!(forbids(&format!(r#"{{"{flag}":true}}"#), &keeps), expected, "{flag}");
        assert_eq!(forbids(&format!(r#"{{"{flag}":true}}"#), &keeps_nothing), None, "{flag}");
        assert_eq!(forbids(&format!(r#"{{"{flag}":false}}"#), &keeps), None, "{flag}");
    }
    assert_eq!(forbids(r#"{"enforce_zdr":true}"#, &keeps), Some("enforce_zdr"), "a group that says nothing follows");
    assert_eq!(forbids(r#"{"enforce_zdr":true}"#, &keeps_nothing), None);
    assert_eq!(forbids(&format!(r#"{{"enforce_zdr":true,"{own}":false}}"#), &keeps), None, "one that says no does not");
    assert_eq!(forbids(&format!(r#"{{"enforce_zdr":false,"{own}":true}}"#), &keeps), Some(own));
}

#[test]
fn training_rules_depend_on_price_and_collection() {
    let free = with_policy(candidate("acme/judge", "mirror"), false, true);
    let paid_in = at_price(free.clone(), "0.1", "0");
    let paid_out = at_price(free.clone(), "0", "0.1");
    let unknown = Candidate { is_priced: false, ..free.clone() };
    let no_paid = r#"{"enable_paid_model_training":false}"#;
    let no_free = r#"{"enable_free_model_training":false}"#;
    for (candidate, paid, costs_nothing) in
        [(&free, false, true), (&paid_in, true, false), (&paid_out, true, false), (&unknown, true, true)]
    {
        assert_eq!(forbids(no_paid, candidate), paid.then_some("enable_paid_model_training"));
        assert_eq!(forbids(no_free, candidate), costs_nothing.then_some("enable_free_model_training"));
        for (zdr, collects) in [(false, false), (true, false), (true, true)] {
            let clean = with_policy(candidate.clone(), zdr, collects);
            assert_eq!((forbids(no_paid, &clean), forbids(no_free, &clean)), (None, None), "nothing is collected");
        }
        for allowed in ["true", "null"] {
            let both = format!(r#"{{"enable_paid_model_training":{allowed},"enable_free_model_training":{allowed}}}"#);
            assert_eq!(forbids(&both, candidate), None);
        }
    }
}
