//! `model`, `models` and `partial`.

use super::*;

fn with(model: Option<&str>, models: Option<&str>) -> Result<DecisionRequest, InvalidDecision> {
    let json = |text: &str| Json::parse(text).unwrap();
    DecisionDraft { model: model.map(json), models: models.map(json), ..draft("\"?\"", None) }.check()
}

#[rstest]
#[case::model_alone(Some("\"a\""), None, "a", &[])]
#[case::models_alone(None, Some(r#"["a","b"]"#), "a", &["b"])]
#[case::null_model(Some("null"), Some(r#"["a"]"#), "a", &[])]
#[case::both(Some("\"a\""), Some(r#"["b","c"]"#), "a", &["b", "c"])]
#[case::first_again(Some("\"a\""), Some(r#"["a","b","a","b"]"#), "a", &["b"])]
#[case::no_more(Some("\"a\""), Some("[]"), "a", &[])]
#[case::null_models(Some("\"a\""), Some("null"), "a", &[])]
fn models_are_first_model_and_fallbacks(
    #[case] model: Option<&str>,
    #[case] models: Option<&str>,
    #[case] first: &str,
    #[case] rest: &[&str],
) {
    let request = with(model, models).unwrap();
    assert_eq!(
        (request.model.as_str(), request.fallback_models),
        (first, rest.iter().map(|m| (*m).to_owned()).collect())
    );
}

#[rstest]
#[case::neither(None, None, "model: is required")]
#[case::empty(None, Some("[]"), "model: is required")]
#[case::no_string(Some("7"), Some(r#"["a"]"#), "model: must be a non-empty string")]
#[case::no_array(Some("\"a\""), Some("\"b\""), "models: must be an array of model names")]
#[case::no_name(Some("\"a\""), Some(r#"["b",""]"#), "models[1]: must be a non-empty string")]
#[case::null_name(Some("\"a\""), Some("[null]"), "models[0]: must be a non-empty string")]
fn check_rejects_invalid_models_with_path(
    #[case] model: Option<&str>,
    #[case] models: Option<&str>,
    #[case] expected: &str,
) {
    assert_eq!(with(model, models).unwrap_err().to_string(), expected);
}

#[test]
fn check_rejects_too_many_models() {
    let names = |count: usize| format!("[{}]", (0..count).map(|n| format!("\"m{n}\"")).collect::<Vec<_>>().join(","));
    assert_eq!(with(Some("\"a\""), Some(&names(16))).unwrap().fallback_models.len(), 16);
    assert_eq!(with(Some("\"a\""), Some(&names(17))).unwrap_err().to_string(), "models: must have at most 16 names");
}

#[test]
fn check_rejects_partial_that_is_no_boolean() {
    let with = |partial: &str| DecisionDraft { partial: Json::parse(partial).ok(), ..draft("\"?\"", None) }.check();
    assert!(with("true").unwrap().partial);
    assert!(!with("false").unwrap().partial);
    assert!(!with("null").unwrap().partial);
    assert!(!draft("\"?\"", None).check().unwrap().partial);
    for refused in ["1", "\"true\"", "[]"] {
        assert_eq!(with(refused).unwrap_err().to_string(), "partial: must be a boolean");
    }
}
