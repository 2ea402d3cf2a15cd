//! Tests of the parser.

use std::collections::BTreeSet;

use serde_json::{Value, to_value};
use utoipa::ToSchema;

use super::super::record::{CreateKeyRequest, UpdateKeyRequest};
use super::*;

fn described<T: ToSchema>() -> BTreeSet<String> {
    let schema = to_value(T::schema()).unwrap();
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    let members = schemas.iter().find(|(name, _)| name == "KeyMembers").map(|(_, part)| to_value(part).unwrap());
    let parts = [schema, members.unwrap_or_default()];
    let all = parts
        .iter()
        .flat_map(|part| part["allOf"].as_array().cloned().unwrap_or_default().into_iter().chain([part.clone()]));
    let names =
        |part: Value| part["properties"].as_object().cloned().unwrap_or_default().into_iter().map(|(name, _)| name);
    all.flat_map(names).collect()
}

#[test]
fn described_members_are_those_that_are_read() {
    let names: BTreeSet<String> =
        NAMES.into_iter().chain(NEUTRAL.map(|member| member.name)).map(str::to_owned).collect();
    assert_eq!(described::<UpdateKeyRequest>(), names);
    let created: BTreeSet<String> = names.into_iter().filter(|name| name != "disabled").collect();
    assert_eq!(described::<CreateKeyRequest>(), created);
}

fn new(text: &str) -> Result<NewKey, String> {
    read_new(text).map_err(|error| error.text().to_owned())
}

fn change(text: &str) -> Result<Option<ApiKeyChange>, String> {
    read_change(text).map_err(|error| error.text().to_owned())
}

#[test]
fn new_key_has_the_given_members_and_neutral_ones_are_accepted() {
    let NewKey { new: key, workspace } =
        new(r#"{"name":"n","workspace_id":null,"limit":2.500000000001,"limit_reset":"weekly","requests_per_minute":7,
            "tokens_per_minute":null,"expires_at":"2027-01-31T00:00:00.000+00:00","creator_user_id":"c",
            "external":{"user":"u","api_key":null},"include_byok_in_limit":false,"management":null,"disabled":false,"hash":"x","usage":1}"#)
        .unwrap();
    assert_eq!(workspace, Some(None));
    let limit = key.limit.unwrap();
    assert_eq!((limit.amount.to_string().as_str(), limit.reset), ("2.500000000001", Some(ResetInterval::Weekly)));
    assert_eq!(key.rates, RateLimits { requests_per_minute: Some(7), tokens_per_minute: None });
    assert_eq!((key.creator_user_id.as_deref(), key.external_user.as_deref()), (Some("c"), Some("u")));
    assert_eq!(key.expires_at.unwrap().to_rfc3339(), "2027-01-31T00:00:00+00:00");
    let management = new(r#"{"name":"n","management":{"access":"keys","workspaces":null}}"#).unwrap();
    assert_eq!(management.workspace, None);
    assert_eq!(
        management.new.scope.management().map(domain::authority::ManagementScope::access),
        Some(ManagementAccess::Keys)
    );
}

#[test]
fn new_key_rejects_invalid_members_with_their_path() {
    for (member, fault) in [
        (r#""nmae":"x""#, r#"unknown member "nmae"; the nearest known member is "name""#),
        (r#""name":"x""#, "name: is in the body more than once"),
        (r#""disabled":true"#, "disabled: must be false: create the key, then disable it"),
        (r#""limit":"1""#, "limit: must be an amount of USD"),
        (r#""limit":0.0000000000001"#, "limit: must be an amount of USD"),
        (r#""limit_reset":"daily""#, "limit_reset: requires a limit"),
        (r#""limit":1,"limit_reset":"yearly""#, "limit_reset: must be daily, weekly, monthly or null"),
        (r#""requests_per_minute":0"#, "requests_per_minute: must be a whole number from 1 to 4294967295"),
        (r#""tokens_per_minute":1.5"#, "tokens_per_minute: must be a whole number from 1 to 4294967295"),
        (r#""expires_at":"2027-01-31T00:00:00""#, "expires_at: must be an RFC 3339 time in UTC"),
        (r#""expires_at":"2027-01-31T00:00:00+01:00""#, "expires_at: must be an RFC 3339 time in UTC"),
        (r#""expires_at":"2030-05-15T12:00:60Z""#, "expires_at: must be an RFC 3339 time in UTC"),
        (r#""expires_at":"2027-01-31T00:00:00.1230001Z""#, "expires_at: must have at most 3 decimals of a second"),
        (r#""guardrail_id":"x""#, "guardrail_id: must be the id of a guardrail"),
        (r#""workspace_id":"x""#, "workspace_id: must be a UUID"),
        (r#""external_user":"""#, "external_user: a label of a user has 1 to 512 characters"),
        (r#""external_user":"a","external":{"user":"b"}"#, "external: is another form of external_user"),
        (r#""external":{"user":"b","api_key":"k"}"#, "external.api_key: is not supported"),
        (r#""external":{"usr":"b"}"#, r#"external: has an unknown member "usr""#),
        (r#""include_byok_in_limit":true"#, "include_byok_in_limit is not supported"),
        (r#""management":{}"#, "management.access: is required"),
        (r#""management":{"access":"all"}"#, "management.access: must be read, keys or write"),
        (r#""management":{"access":"read","workspaces":[]}"#, "management.workspaces: a management key has all"),
        (r#""management":{"access":"read","workspaces":["x"]}"#, "management.workspaces: must be an array"),
        (r#""management":{"access":"read"},"limit":1"#, "limit: is not a member of a management key"),
        (r#""management":{"acces":"read"}"#, r#"management: unknown member "acces""#),
    ] {
        let said = new(&format!(r#"{{"name":"n",{member}}}"#)).unwrap_err();
        assert!(said.starts_with(fault), "{member}: {said}");
    }
    assert_eq!(new("{}").unwrap_err(), "name: is required");
    assert!(new("[]").is_err());
}

#[test]
fn change_keeps_absent_members_clears_null_and_ignores_read_only_ones() {
    let edit =
        change(r#"{"limit":null,"limit_reset":null,"external_user":null,"hash":"x","usage":1}"#).unwrap().unwrap();
    assert_eq!((edit.limit, edit.limit_reset), (Edit::Clear, Edit::Clear));
    assert_eq!((edit.external_user, edit.requests_per_minute, edit.disabled), (Edit::Clear, Edit::Keep, None));
    let narrowed = change(r#"{"management":{"access":"read"},"external":null}"#).unwrap().unwrap();
    let whole = ManagementScope::try_new(ManagementAccess::Read, None).unwrap();
    assert_eq!((narrowed.management, narrowed.external_user), (Edit::Set(whole), Edit::Clear), "replaced as a whole");
    assert_eq!(change(r#"{"management":null}"#).unwrap().unwrap().management, Edit::Clear);
    for none in ["{}", r#"{"hash":"x","label":"y"}"#, r#"{"include_byok_in_limit":false}"#] {
        assert!(change(none).unwrap().is_none(), "{none}");
    }
    assert_eq!(change(r#"{"name":null}"#).unwrap_err(), "name: must be a string");
    assert_eq!(change(r#"{"disabled":1}"#).unwrap_err(), "disabled: must be true or false");
    assert_eq!(
        change(r#"{"disable":true}"#).unwrap_err(),
        r#"unknown member "disable"; the nearest known member is "disabled""#
    );
}
