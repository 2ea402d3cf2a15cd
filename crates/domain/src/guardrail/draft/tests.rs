use rstest::rstest;

use super::GuardrailDraft;
use crate::budget::{ResetInterval, SpendLimit};
use crate::guardrail::fixtures::{apply_draft, guardrail, names, read, rows, workspace_id};
use crate::guardrail::{
    BuiltinContentFilter, BuiltinFilter, ContentFilter, DataPolicyRules, Guardrail, GuardrailRules, InvalidGuardrail,
    KnownNames, ScanScope,
};
use crate::model::Model;
use crate::money::Usd;
use crate::routing::EndpointDirectory;
use crate::testing::MemoryCatalogue;
use crate::usage::FilterAction;
use std::sync::Arc;

fn fault(text: &str) -> InvalidGuardrail {
    match apply_draft(text) {
        Err(fault) => fault,
        Ok(_) => panic!("{text} is no fault"),
    }
}

fn rules(text: &str) -> GuardrailRules {
    apply_draft(text).unwrap().rules
}

fn list(count: usize, element: &str) -> String {
    vec![element; count].join(",")
}

#[test]
fn apply_keeps_every_member() {
    let record = r#"{
        "name": "strict", "description": "for the night", "workspace_default": true,
        "allowed_models": ["acme/judge"], "ignored_models": ["rival/oracle"],
        "allowed_providers": ["typesafe"], "ignored_providers": ["sandbox"],
        "limit_usd": 12.50, "reset_interval": "weekly",
        "enforce_zdr": false, "enforce_zdr_anthropic": true, "enforce_zdr_openai": true, "enforce_zdr_google": true,
        "enforce_zdr_xai": true, "enforce_zdr_other": true,
        "enable_paid_model_training": false, "enable_free_model_training": false,
        "content_filters": [{"pattern": "hush", "action": "block", "label": "SECRET PLAN"},
                            {"pattern": "x", "action": "flag", "label": null}],
        "content_filter_builtins": [{"slug": "email", "action": "redact", "label": "whatever", "scan_scope": "user_only"}],
        "allowed_data_regions": null, "include_byok_in_budgets": false
    }"#;
    let draft = read(record).unwrap();
    assert_eq!((draft.name(), draft.workspace_default(), draft.workspace_id()), (Some("strict"), Some(true), None));
    let made = draft.apply(guardrail(1), &names()).unwrap();
    let amount: Usd = "12.5".parse().unwrap();
    assert_eq!(made.budget, Some(SpendLimit { amount, reset: Some(ResetInterval::Weekly) }));
    let one = |name: &str| Some(vec![name.to_owned()]);
    let custom = |pattern: &str, action, label: Option<&str>| ContentFilter {
        pattern: pattern.to_owned(),
        action,
        label: label.map(str::to_owned),
    };
    let expected = GuardrailRules {
        description: Some("for the night".to_owned()),
        allowed_models: one("acme/judge-20260901"),
        ignored_models: one("rival/oracle-1"),
        ignored_model_ids: vec!["rival/oracle".to_owned()],
        allowed_providers: one("typesafe"),
        ignored_providers: one("sandbox"),
        data_policy: DataPolicyRules {
            enforce_zdr: Some(false),
            enforce_zdr_anthropic: Some(true),
            enforce_zdr_openai: Some(true),
            enforce_zdr_google: Some(true),
            enforce_zdr_xai: Some(true),
            enforce_zdr_other: Some(true),
            enable_paid_model_training: Some(false),
            enable_free_model_training: Some(false),
        },
        content_filters: vec![
            custom("hush", FilterAction::Block, Some("SECRET PLAN")),
            custom("x", FilterAction::Flag, None),
        ],
        content_filter_builtins: vec![BuiltinContentFilter {
            slug: BuiltinFilter::Email,
            action: FilterAction::Redact,
            scan_scope: ScanScope::UserOnly,
        }],
    };
    assert_eq!(made.rules, expected);
}

#[rstest]
#[case::id("acme/judge", "acme/judge-20260901")]
#[case::case("ACME/Judge", "acme/judge-20260901")]
#[case::canonical("acme/judge-20260901", "acme/judge-20260901")]
#[case::variant("acme/judge:free", "acme/judge-20260901")]
#[case::dynamic("acme/judge:nitro", "acme/judge-20260901")]
#[case::former("acme/judge-next", "acme/judge-20260901")]
#[case::alias("~acme/judge-latest", "acme/judge-20260901")]
#[case::bare("oracle", "rival/oracle-1")]
#[case::no_decider("rival/writer", "rival/writer")]
#[case::sandbox("sandbox/decider", "sandbox/decider")]
fn apply_stores_models_by_canonical_slug(#[case] name: &str, #[case] slug: &str) {
    for member in ["allowed_models", "ignored_models"] {
        let rules = rules(&format!(r#"{{"{member}":["{name}"]}}"#));
        let found = if member == "allowed_models" { rules.allowed_models } else { rules.ignored_models };
        assert_eq!(found.unwrap(), [slug]);
    }
}

#[test]
fn apply_removes_duplicates_and_keeps_list_order() {
    let found = rules(
        r#"{"allowed_models":["oracle","acme/judge","acme/judge:free","acme/judge-next","rival/oracle"],
            "allowed_providers":["mirror","typesafe","Mirror"]}"#,
    );
    assert_eq!(found.allowed_models.unwrap(), ["rival/oracle-1", "acme/judge-20260901"]);
    assert_eq!(found.allowed_providers.unwrap(), ["mirror", "typesafe"]);
}

#[test]
fn apply_suggests_similar_names_for_unknown_ones() {
    let unknown = fault(r#"{"ignored_models":["acme/judge","acme/jugde"]}"#);
    assert_eq!(unknown.path, "ignored_models[1]");
    assert_eq!(unknown.nearest, ["acme/judge", "acme/judge:free"]);
    assert_eq!(
        unknown.to_string(),
        r#"ignored_models[1]: "acme/jugde" is not a model of the catalogue; nearest: acme/judge, acme/judge:free"#
    );
    let unknown = fault(r#"{"allowed_models":["zzzzzzzzzzzzzzzzzzzzzzzzzzz"]}"#);
    assert!(unknown.nearest.is_empty());
    assert!(unknown.fault.ends_with("is not a model of the catalogue"), "{unknown}");
    let unknown = fault(r#"{"allowed_providers":["typsafe"]}"#);
    assert_eq!(
        unknown.to_string(),
        r#"allowed_providers[0]: "typsafe" is not a configured provider; nearest: typesafe"#
    );
    assert_eq!(fault(r#"{"ignored_providers":["\n\u001b[2J"]}"#).path, "ignored_providers[0]");
    let long = fault(&format!(r#"{{"allowed_models":["{}"]}}"#, "é".repeat(5_000)));
    assert!(long.fault.chars().count() < 200 && long.fault.contains('…'), "{long}");
    let hostile = fault(r#"{"allowed_models":["a\nb\u001b"]}"#);
    assert!(!hostile.to_string().contains(char::is_control), "{hostile}");
}

#[rstest]
#[case::not_an_object("[]", "", "a JSON object")]
#[case::name_null(r#"{"name":null}"#, "name", "must be a string, not null")]
#[case::name_number(r#"{"name":7}"#, "name", "must be a string, not a number")]
#[case::name_empty(r#"{"name":""}"#, "name", "1 to 200 characters")]
#[case::name_control(r#"{"name":"a\u0007"}"#, "name", "no control characters")]
#[case::half_a_character(r#"{"name":"\ud800"}"#, "name", "unpaired surrogate")]
#[case::twice(r#"{"limit_usd":1,"name":"a","limit_usd":2}"#, "limit_usd", "more than once")]
#[case::twice_null(r#"{"allowed_models":["acme/judge"],"allowed_models":null}"#, "allowed_models", "more than once")]
#[case::twice_flag(r#"{"enforce_zdr":true,"enforce_zdr":false}"#, "enforce_zdr", "more than once")]
#[case::description(r#"{"description":true}"#, "description", "must be a string, not a boolean")]
#[case::empty_list(r#"{"allowed_models":[]}"#, "allowed_models", "at least one element; null removes")]
#[case::empty_providers(r#"{"ignored_providers":[]}"#, "ignored_providers", "at least one")]
#[case::no_list(r#"{"allowed_models":"acme/judge"}"#, "allowed_models", "must be an array, not a string")]
#[case::empty_element(r#"{"ignored_models":["acme/judge",""]}"#, "ignored_models[1]", "must not be empty")]
#[case::no_name(r#"{"allowed_providers":[1]}"#, "allowed_providers[0]", "must be a string, not a number")]
#[case::limit_alone(r#"{"limit_usd":1}"#, "reset_interval", "together with limit_usd")]
#[case::interval_alone(r#"{"reset_interval":"daily"}"#, "limit_usd", "together with reset_interval")]
#[case::interval_of_nothing(r#"{"limit_usd":null,"reset_interval":"daily"}"#, "limit_usd", "together")]
#[case::limit_zero(r#"{"limit_usd":0,"reset_interval":null}"#, "limit_usd", "more than 0 USD")]
#[case::limit_negative(r#"{"limit_usd":-0.5,"reset_interval":null}"#, "limit_usd", "more than 0 USD")]
#[case::limit_too_fine(r#"{"limit_usd":1e-13,"reset_interval":null}"#, "limit_usd", "at most 12 digits")]
#[case::limit_too_large(
    r#"{"limit_usd":1e300,"reset_interval":null}"#,
    "limit_usd",
    "at most 9223372.036854775807, with"
)]
#[case::limit_just_too_large(
    r#"{"limit_usd":9223372.036854775808,"reset_interval":null}"#,
    "limit_usd",
    "at most 9223372"
)]
#[case::limit_text(r#"{"limit_usd":"5","reset_interval":null}"#, "limit_usd", "must be a number, not a string")]
#[case::interval(r#"{"limit_usd":1,"reset_interval":"hourly"}"#, "reset_interval", "daily, weekly, monthly or null")]
#[case::interval_kind(r#"{"limit_usd":1,"reset_interval":7}"#, "reset_interval", "must be a string")]
#[case::flag(r#"{"enforce_zdr_xai":"yes"}"#, "enforce_zdr_xai", "must be a boolean, not a string")]
#[case::training(r#"{"enable_free_model_training":1}"#, "enable_free_model_training", "must be a boolean")]
#[case::default(r#"{"workspace_default":"true"}"#, "workspace_default", "must be a boolean")]
#[case::workspace(r#"{"workspace_id":"w1"}"#, "workspace_id", "must be a UUID")]
#[case::regions(r#"{"allowed_data_regions":["europe"]}"#, "allowed_data_regions", "cannot be kept")]
#[case::no_region(r#"{"allowed_data_regions":["mars"]}"#, "allowed_data_regions[0]", "global, europe or us")]
#[case::safety(r#"{"allow_safety_retention_google":true}"#, "allow_safety_retention_google", "cannot be kept")]
#[case::safety_other(r#"{"allow_safety_retention_other":true}"#, "allow_safety_retention_other", "cannot be kept")]
#[case::publication(r#"{"enable_free_model_publication":false}"#, "enable_free_model_publication", "cannot be kept")]
#[case::byok_spend(r#"{"include_byok_in_budgets":true}"#, "include_byok_in_budgets", "cannot be kept")]
#[case::byok(r#"{"include_byok_in_budgets":"no"}"#, "include_byok_in_budgets", "must be a boolean")]
#[case::filters(r#"{"content_filters":{}}"#, "content_filters", "must be an array, not an object")]
#[case::filter(r#"{"content_filters":["x"]}"#, "content_filters[0]", "must be an object, not a string")]
#[case::no_pattern(r#"{"content_filters":[{"action":"block"}]}"#, "content_filters[0].pattern", "is required")]
#[case::pattern(
    r#"{"content_filters":[{"pattern":1,"action":"block"}]}"#,
    "content_filters[0].pattern",
    "must be a string"
)]
#[case::no_action(r#"{"content_filters":[{"pattern":"x"}]}"#, "content_filters[0].action", "is required")]
#[case::action(
    r#"{"content_filters":[{"pattern":"x","action":"warn"}]}"#,
    "content_filters[0].action",
    "block, redact or flag"
)]
#[case::two_actions(
    r#"{"content_filters":[{"pattern":"x","action":"flag","action":"block"}]}"#,
    "content_filters[0].action",
    "more than once"
)]
#[case::empty_label(
    r#"{"content_filters":[{"pattern":"x","action":"flag","label":""}]}"#,
    "content_filters[0].label",
    "1 to 100 characters"
)]
#[case::builtin(r#"{"content_filter_builtins":[7]}"#, "content_filter_builtins[0]", "must be an object")]
#[case::no_slug(
    r#"{"content_filter_builtins":[{"action":"block"}]}"#,
    "content_filter_builtins[0].slug",
    "is required"
)]
#[case::builtin_action(
    r#"{"content_filter_builtins":[{"slug":"ssn"}]}"#,
    "content_filter_builtins[0].action",
    "is required"
)]
#[case::scope(
    r#"{"content_filter_builtins":[{"slug":"ssn","action":"flag","scan_scope":"x"}]}"#,
    "content_filter_builtins[0].scan_scope",
    "user_only or all_messages"
)]
#[case::again(
    r#"{"content_filter_builtins":[{"slug":"ssn","action":"flag"},{"slug":"ssn","action":"block"}]}"#,
    "content_filter_builtins[1].slug",
    "is in the list already"
)]
fn error_has_the_path_of_the_member(#[case] text: &str, #[case] path: &str, #[case] sentence: &str) {
    let fault = fault(text);
    assert_eq!(fault.path, path);
    assert!(fault.fault.contains(sentence), "{fault}");
    assert!(!fault.to_string().starts_with(':'), "{fault}");
}

#[rstest]
#[case("person-name", "requires a language model")]
#[case("address", "requires a language model")]
#[case("emial", "must be one of")]
fn error_lists_builtins_for_unknown_slug(#[case] slug: &str, #[case] reason: &str) {
    let fault = fault(&format!(r#"{{"content_filter_builtins":[{{"slug":"{slug}","action":"block"}}]}}"#));
    assert_eq!(fault.path, "content_filter_builtins[0].slug");
    assert!(fault.fault.contains(reason), "{fault}");
    for known in BuiltinFilter::ALL {
        assert!(fault.fault.contains(known.as_str()), "{fault}");
    }
}

#[test]
fn read_rejects_lengths_above_the_limits() {
    let described = |count| format!(r#"{{"description":"{}"}}"#, "é".repeat(count));
    assert!(apply_draft(&described(1000)).is_ok());
    assert_eq!(fault(&described(1001)).fault, "must have at most 1000 characters");
    let named = |count| format!(r#"{{"name":"{}"}}"#, "é".repeat(count));
    assert!(apply_draft(&named(200)).is_ok());
    assert_eq!(fault(&named(201)).path, "name");
    let many = |count| format!(r#"{{"allowed_models":[{}]}}"#, list(count, "\"acme/judge\""));
    assert_eq!(rules(&many(1000)).allowed_models.unwrap().len(), 1);
    assert_eq!(fault(&many(1001)).to_string(), "allowed_models: must have at most 1000 elements, not 1001");
    let labelled =
        |count| format!(r#"{{"content_filters":[{{"pattern":"x","action":"flag","label":"{}"}}]}}"#, "é".repeat(count));
    let patterns = |length: usize| {
        let one = format!(r#"{{"pattern":"(?x)a #{}","action":"flag"}}"#, "x".repeat(length - 7));
        format!(r#"{{"content_filters":[{}]}}"#, vec![one; 8].join(","))
    };
    assert!(apply_draft(&patterns(8 << 10)).is_ok());
    assert!(fault(&patterns((8 << 10) + 1)).to_string().contains("at most 65536 bytes of patterns together"));
    assert!(apply_draft(&labelled(100)).is_ok());
    assert_eq!(fault(&labelled(101)).path, "content_filters[0].label");
}

#[rstest]
#[case(r#"{"allowed_data_regions":["us","global","europe"]}"#)]
#[case(r#"{"allowed_data_regions":[]}"#)]
#[case(r#"{"allow_safety_retention_google":false,"allow_safety_retention_other":null}"#)]
#[case(r#"{"enable_free_model_publication":true}"#)]
#[case(r#"{"include_byok_in_budgets":false}"#)]
#[case(r#"{"limit_usd":null,"reset_interval":null}"#)]
#[case(r#"{"reset_interval":null}"#)]
#[case(r#"{"content_filters":null,"content_filter_builtins":null}"#)]
#[case::members_that_only_the_service_sets(r#"{"id":"x","version":3,"created_at":"y","updated_at":null}"#)]
fn apply_ignores_members_without_effect(#[case] text: &str) {
    assert_eq!(apply_draft(text).unwrap(), guardrail(1));
}

#[rstest]
#[case(
    r#"{"content_filter_builtin":[]}"#,
    r#"unknown member "content_filter_builtin"; the nearest known member is "content_filter_builtins""#
)]
#[case(r#"{"enforce_zrd":true}"#, r#"unknown member "enforce_zrd"; the nearest known member is "enforce_zdr""#)]
#[case(
    r#"{"content_filters":[{"patern":"x","action":"block"}]}"#,
    r#"content_filters[0]: unknown member "patern"; the nearest known member is "pattern""#
)]
#[case(
    r#"{"content_filter_builtins":[{"slug":"email","acton":"block"}]}"#,
    r#"content_filter_builtins[0]: unknown member "acton"; the nearest known member is "action""#
)]
fn read_rejects_unknown_members_with_nearest_name(#[case] text: &str, #[case] expected: &str) {
    let error = read(text).unwrap_err().to_string();
    assert!(error.ends_with(expected), "{error}");
}

/// A guardrail with every kind of rule.
fn full_guardrail() -> Guardrail {
    let record = r#"{"description":"d","allowed_models":["acme/judge"],"ignored_providers":["mirror"],"limit_usd":5,
        "reset_interval":"daily","enforce_zdr":true,"content_filters":[{"pattern":"x","action":"block"}],
        "content_filter_builtins":[{"slug":"email","action":"flag"}]}"#;
    apply_draft(record).unwrap()
}

fn changed(text: &str) -> Result<Guardrail, InvalidGuardrail> {
    read(text).unwrap().apply(full_guardrail(), &names())
}

#[test]
fn apply_keeps_absent_members_and_clears_null_members() {
    assert_eq!(changed("{}").unwrap(), full_guardrail());
    let renamed = changed(r#"{"name":"other"}"#).unwrap();
    assert_eq!(renamed, Guardrail { name: renamed.name.clone(), ..full_guardrail() });
    assert_eq!(renamed.name.as_str(), "other");
    let emptied = changed(
        r#"{"description":null,"allowed_models":null,"ignored_providers":null,"limit_usd":null,"enforce_zdr":null,
            "content_filters":null,"content_filter_builtins":null}"#,
    );
    assert_eq!(emptied.unwrap(), guardrail(1));
    let replaced =
        changed(r#"{"allowed_models":["rival/oracle"],"content_filters":[{"pattern":"y","action":"flag"}]}"#);
    let replaced = replaced.unwrap();
    assert_eq!(replaced.rules.allowed_models.unwrap(), ["rival/oracle-1"]);
    assert_eq!(replaced.rules.content_filters.len(), 1);
    assert_eq!(replaced.rules.content_filter_builtins, full_guardrail().rules.content_filter_builtins);
}

#[test]
fn apply_checks_only_lists_that_change() {
    let catalogue = Arc::new(MemoryCatalogue::new(Vec::new()));
    let nothing = KnownNames::new(catalogue, Arc::new(EndpointDirectory::default()));
    let lists = r#""allowed_models":["acme/judge-20260901"],"ignored_models":["rival/oracle-1"],"allowed_providers":["typesafe"]"#;
    let before = read(&format!("{{{lists}}}")).unwrap().apply(guardrail(1), &names()).unwrap();
    let echoed = read(&format!(r#"{{"name":"other",{lists}}}"#)).unwrap().apply(before.clone(), &nothing).unwrap();
    assert_eq!(echoed.rules, before.rules, "they have left the catalogue and the configuration");
    for changed in [r#"{"allowed_models":["acme/judge"]}"#, r#"{"allowed_providers":["sandbox","typesafe"]}"#] {
        assert!(read(changed).unwrap().apply(before.clone(), &nothing).is_err(), "{changed}");
    }
}

#[test]
fn apply_requires_amount_and_interval_of_a_new_budget_together() {
    let forever = changed(r#"{"limit_usd":7,"reset_interval":null}"#).unwrap().budget.unwrap();
    assert_eq!((forever.amount.to_string(), forever.reset), ("7".to_owned(), None));
    for half in [r#"{"limit_usd":7}"#, r#"{"reset_interval":"monthly"}"#] {
        assert!(read(half).unwrap().apply(guardrail(1), &names()).unwrap_err().fault.contains("together"), "{half}");
    }
    let now = full_guardrail().budget.unwrap();
    for (half, expected) in [
        (r#"{"limit_usd":7}"#, SpendLimit { amount: "7".parse().unwrap(), ..now }),
        (r#"{"reset_interval":"monthly"}"#, SpendLimit { reset: Some(ResetInterval::Monthly), ..now }),
        (r#"{"reset_interval":null}"#, SpendLimit { reset: None, ..now }),
    ] {
        assert_eq!(changed(half).unwrap().budget, Some(expected), "{half}");
    }
}

#[test]
fn apply_rejects_change_of_workspace() {
    let to = |number| read(&format!(r#"{{"workspace_id":"{}"}}"#, workspace_id(number))).unwrap();
    assert_eq!(to(900).apply(guardrail(1), &names()).unwrap(), guardrail(1));
    assert_eq!(to(901).apply(guardrail(1), &names()).unwrap_err().path, "workspace_id");
    assert!(to(900).require_changes().is_err(), "a workspace is no change");
}

#[test]
fn require_changes_rejects_empty_draft() {
    for empty in ["{}", r#"{"id":"x"}"#] {
        assert_eq!(read(empty).unwrap().require_changes().unwrap_err().to_string(), "No update fields provided");
    }
    for change in [r#"{"description":null}"#, r#"{"workspace_default":false}"#, r#"{"enforce_zdr":null}"#] {
        assert!(read(change).unwrap().require_changes().is_ok(), "{change}");
    }
    assert!(GuardrailDraft::named("x").require_changes().is_ok());
}

#[test]
fn apply_validates_only_lists_that_change() {
    let left: Vec<Model> =
        rows().into_iter().filter(|row| row.canonical_slug.as_str() != "acme/judge-20260901").collect();
    let later = KnownNames::new(Arc::new(MemoryCatalogue::new(left)), Arc::new(EndpointDirectory::default()));
    let change = |text: &str| read(text).unwrap().apply(full_guardrail(), &later);
    assert_eq!(change(r#"{"name":"n"}"#).unwrap().rules, full_guardrail().rules);
    assert!(change(r#"{"allowed_models":["acme/judge"]}"#).is_err());
}

proptest::proptest! {
    #[test]
    fn read_and_apply_never_panic(text in r#"\{("(name|allowed_models|limit_usd|content_filters|reset_interval)":(null|[0-9]{1,3}|"[ -~]{0,9}"|\[\]|\{\}|true),){0,3}"x":0\}"#) {
        if let Ok(json) = crate::json::Json::parse(&text) {
            let _ = GuardrailDraft::read(&json).and_then(|draft| draft.apply(guardrail(1), &names()));
        }
    }
}
