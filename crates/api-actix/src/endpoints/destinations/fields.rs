//! Parser of the body that creates or changes a destination.

use domain::json::{Json, JsonKind, JsonText};
use domain::observability::DestinationFields;
use serde::de::DeserializeOwned;
use wires::client::{ErrorLocation, check_names, read_members, read_object};

use crate::http::error::ApiError;
use crate::http::members::NeutralMember;

/// The members of a destination that have a function.
const NAMES: [&str; 8] =
    ["name", "type", "config", "enabled", "privacy_mode", "sampling_rate", "api_key_hashes", "workspace_id"];
/// Members that published clients send and that have no function here.
const NEUTRAL: [NeutralMember; 6] = [
    NeutralMember::new("broadcast_generation_cost", &["false"]),
    NeutralMember::new("broadcast_generation_cost_allocation", &["false"]),
    NeutralMember::new("broadcast_generation_identity", &["false"]),
    NeutralMember::new("broadcast_generation_request_context", &["false"]),
    NeutralMember {
        name: "filter_rules",
        values: &["[]"],
        remedy: ": use api_key_hashes, sampling_rate and privacy_mode",
    },
    NeutralMember::new("regions", &["[]", r#"["global"]"#]),
];
/// Members that only the service sets. They may be sent back.
const READ_ONLY: [&str; 4] = ["id", "created_at", "updated_at", "signed"];
/// The members of `config`. The only `method` is POST.
const CONFIG_NAMES: [&str; 5] = ["url", "endpoint", "headers", "secret", "method"];

/// Returns the fields and the named workspace.
pub(super) fn read(text: &str) -> Result<(DestinationFields, Option<String>), ApiError> {
    let [name, kind, config, enabled, privacy_mode, rate, hashes, workspace] = read_members(text, &NAMES)?;
    // A misspelt restriction must not be ignored.
    let known: Vec<&str> = NAMES.into_iter().chain(NEUTRAL.map(|member| member.name)).collect();
    check_names(text, &known, &READ_ONLY).map_err(ApiError::invalid)?;
    NeutralMember::check_all(&NEUTRAL, &read_object(text)?.members().unwrap_or_default())?;
    let mut fields = DestinationFields {
        name: parse_member("name", "a string", name)?,
        kind: parse_member("type", "a string", kind)?,
        enabled: parse_member("enabled", "true or false", enabled)?,
        privacy_mode: parse_member("privacy_mode", "true or false", privacy_mode)?,
        sampling_rate: rate.map(number).transpose()?,
        api_key_hashes: match parse_member("api_key_hashes", "an array of strings or null", hashes)? {
            Some(hashes) => Some(Some(hashes)),
            None => selects_all_keys(text).then_some(None),
        },
        ..DestinationFields::default()
    };
    if let Some(config) = config {
        read_config(config, &mut fields)?;
    }
    Ok((fields, parse_member("workspace_id", "a string", workspace)?))
}

fn read_config(config: JsonText<'_>, fields: &mut DestinationFields) -> Result<(), ApiError> {
    if !config.get().starts_with('{') {
        return Err(invalid("config", "must be an object"));
    }
    let [url, endpoint, headers, secret, method] = read_members(config.get(), &CONFIG_NAMES)?;
    check_names(config.get(), &CONFIG_NAMES, &[]).map_err(|fault| invalid("config", &format!("has an {fault}")))?;
    let [url, endpoint]: [Option<String>; 2] =
        [parse_member("config.url", "a string", url)?, parse_member("config.endpoint", "a string", endpoint)?];
    if url.is_some() && endpoint.is_some() && url != endpoint {
        return Err(invalid("config.endpoint", "is an alias of config.url and has another value"));
    }
    fields.url = url.or(endpoint);
    if parse_member::<String>("config.method", "a string", method)?.is_some_and(|method| method != "POST") {
        return Err(invalid("config.method", "is not supported: deliveries are sent by POST"));
    }
    fields.secret = parse_member("config.secret", "a string", secret)?;
    if let Some(headers) = headers {
        let members = Json::from(headers).members().ok_or_else(|| invalid("config.headers", "must be an object"))?;
        let text = |(name, value): (String, Json)| {
            let value = value.as_string().ok_or_else(|| invalid("config.headers", "must have strings as values"))?;
            Ok((name, value))
        };
        fields.headers = Some(members.into_iter().map(text).collect::<Result<_, ApiError>>()?);
    }
    Ok(())
}

/// Returns true if the member is present and null, as opposed to absent.
fn selects_all_keys(text: &str) -> bool {
    let members = Json::parse(text).ok().and_then(|body| body.members()).unwrap_or_default();
    members.iter().any(|(name, value)| name == "api_key_hashes" && value.kind() == JsonKind::Null)
}

fn number(value: JsonText<'_>) -> Result<String, ApiError> {
    match Json::from(value).kind() {
        JsonKind::Number => Ok(value.get().to_owned()),
        _ => Err(invalid("sampling_rate", "must be a number")),
    }
}

fn parse_member<T: DeserializeOwned>(
    path: &str,
    what: &str,
    value: Option<JsonText<'_>>,
) -> Result<Option<T>, ApiError> {
    let Some(value) = value else { return Ok(None) };
    let read = serde_json::from_str(value.get());
    read.map(Some).map_err(|_| invalid(path, &format!("must be {what}")))
}

fn invalid(path: &str, fault: &str) -> ApiError {
    ApiError::invalid(format!("{path} {fault}")).location(ErrorLocation::Member(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, to_value};
    use utoipa::ToSchema;

    use super::super::record::{DestinationChange, DestinationRequest};
    use super::*;

    /// Returns the described members of a request, and those of its `config`.
    fn described<T: ToSchema>() -> [BTreeSet<String>; 2] {
        let mut parts = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut parts);
        let names = |schema: &Value| -> Vec<String> {
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let [mut own, mut config] = [BTreeSet::new(), BTreeSet::new()];
        for (name, part) in parts {
            let part = to_value(part).unwrap();
            let members = part["allOf"].as_array().into_iter().flatten().chain([&part]).flat_map(names);
            if name.starts_with("DestinationConfig") { config.extend(members) } else { own.extend(members) }
        }
        [own, config]
    }

    #[test]
    fn described_members_are_those_that_are_read() {
        let except = |all: &[&str], others: &[&str]| -> BTreeSet<String> {
            all.iter().filter(|name| !others.contains(name)).map(|&name| name.to_owned()).collect()
        };
        // A member that has one value only, and an alias.
        let [own, config] = [except(&NAMES, &[]), except(&CONFIG_NAMES, &["endpoint", "method"])];
        assert_eq!(described::<DestinationRequest>(), [own, config.clone()]);
        let changeable = except(&NAMES, &["type", "workspace_id"]);
        assert_eq!(described::<DestinationChange>(), [changeable, config]);
    }

    fn fields(text: &str) -> DestinationFields {
        read(text).map_err(|error| error.text().to_owned()).unwrap_or_else(|message| unreachable!("{message}")).0
    }

    fn fault(text: &str) -> String {
        read(text).map(drop).unwrap_err().text().to_owned()
    }

    #[test]
    fn read_rejects_unknown_member_with_nearest_name() {
        assert_eq!(
            fault(r#"{"privacy_mod":true}"#),
            r#"unknown member "privacy_mod"; the nearest known member is "privacy_mode""#
        );
        assert_eq!(
            fault(r#"{"config":{"ulr":"u"}}"#),
            r#"config has an unknown member "ulr"; the nearest known member is "url""#
        );
    }

    #[test]
    fn read_treats_null_as_absent_except_for_keys() {
        let all = fields(
            r#"{"name":"n","type":"webhook","config":{"url":"u","headers":{"A":"b","A":"c"},"secret":"s"},"enabled":false,
                "privacy_mode":true,"sampling_rate":1e-1,"api_key_hashes":["h"],"id":"x","regions":[]}"#,
        );
        assert_eq!(
            (all.name.as_deref(), all.kind.as_deref(), all.url.as_deref()),
            (Some("n"), Some("webhook"), Some("u"))
        );
        assert_eq!(all.headers.unwrap().len(), 2, "twice the same is for the use case to refuse");
        assert_eq!((all.secret.as_deref(), all.enabled, all.privacy_mode), (Some("s"), Some(false), Some(true)));
        assert_eq!(all.sampling_rate.as_deref(), Some("1e-1"), "as it was written");
        assert_eq!(all.api_key_hashes, Some(Some(vec!["h".to_owned()])));
        assert!(fields("{}").is_empty());
        assert!(fields(r#"{"name":null,"config":null,"enabled":null,"filter_rules":null}"#).is_empty());
        assert_eq!(fields(r#"{"api_key_hashes":null}"#).api_key_hashes, Some(None));
        assert_eq!(fields(r#"{"config":{"endpoint":"u"}}"#).url.as_deref(), Some("u"));
        assert_eq!(fields(r#"{"config":{"endpoint":"u","url":"u","method":"POST"}}"#).url.as_deref(), Some("u"));
    }

    #[test]
    fn members_without_a_function_are_accepted_with_their_neutral_value() {
        for NeutralMember { name, values, .. } in NEUTRAL {
            for value in values.iter().chain([&"null"]) {
                assert!(fields(&format!(r#"{{"{name}":{value}}}"#)).is_empty(), "{name}: {value}");
            }
            assert!(fault(&format!(r#"{{"{name}":7}}"#)).starts_with(&format!("{name} is not supported")));
        }
        assert!(fields(r#"{"regions":["global"],"signed":false}"#).is_empty());
    }

    #[test]
    fn read_rejects_other_types_with_path() {
        for (text, expected) in [
            (r#"{"name":1}"#, "name must be a string"),
            (r#"{"type":[]}"#, "type must be a string"),
            (r#"{"config":"u"}"#, "config must be an object"),
            (r#"{"config":{"url":1}}"#, "config.url must be a string"),
            (r#"{"config":{"secret":{}}}"#, "config.secret must be a string"),
            (r#"{"config":{"headers":["a: b"]}}"#, "config.headers must be an object"),
            (r#"{"config":{"headers":{"a":1}}}"#, "config.headers must have strings as values"),
            (
                r#"{"config":{"url":"a","endpoint":"b"}}"#,
                "config.endpoint is an alias of config.url and has another value",
            ),
            (r#"{"config":{"method":"PUT"}}"#, "config.method is not supported: deliveries are sent by POST"),
            (r#"{"broadcast_generation_cost":true}"#, "broadcast_generation_cost is not supported"),
            (r#"{"regions":["europe"]}"#, "regions is not supported"),
            (r#"{"enabled":"yes"}"#, "enabled must be true or false"),
            (r#"{"privacy_mode":1}"#, "privacy_mode must be true or false"),
            (r#"{"sampling_rate":"0.5"}"#, "sampling_rate must be a number"),
            (r#"{"api_key_hashes":"a"}"#, "api_key_hashes must be an array of strings or null"),
            (r#"{"api_key_hashes":[1]}"#, "api_key_hashes must be an array of strings or null"),
            (r#"{"workspace_id":1}"#, "workspace_id must be a string"),
            (
                r#"{"filter_rules":{"enabled":true}}"#,
                "filter_rules is not supported: use api_key_hashes, sampling_rate and privacy_mode",
            ),
        ] {
            assert_eq!(fault(text), expected);
        }
        assert!(fault(r#"{"name":"a","name":"b"}"#).contains("more than once"));
        assert!(!fault("[]").is_empty());
    }
}
