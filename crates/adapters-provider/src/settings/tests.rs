use super::*;
use rstest::rstest;

fn settings(wire: Wire) -> ProviderSettings {
    ProviderSettings {
        api_key: Some(SecretString::new("k-1")),
        ..ProviderSettings::new("acme".parse().unwrap(), "https://h/v1", wire)
    }
}

fn fixed(base: &str, path: &str) -> String {
    Address::new(base, path).unwrap().of("m").unwrap().to_string()
}

#[test]
fn address_joins_path_with_one_slash() {
    for (base, path) in [("http://h/v1", "systemone"), ("http://h/v1/", "/systemone")] {
        assert_eq!(fixed(base, path), "http://h/v1/systemone");
    }
    assert_eq!(fixed("https://h:8443", "a/b"), "https://h:8443/a/b");
}

#[test]
fn address_rejects_invalid_base_url() {
    for bad in [
        "",
        "h/v1",
        "ftp://h/",
        "http://",
        "http://u:p@h/",
        "http://h/?a=b",
        "http://h/#x",
        "http://h h/",
        "http://{model}/",
    ] {
        assert_eq!(Address::new(bad, "systemone").unwrap_err(), ProviderSettingsError::Address, "{bad}");
    }
    assert_eq!(Address::new("http://h", "a/{modell}").unwrap_err(), ProviderSettingsError::Address);
}

#[rstest]
#[case("@cf/cloudflare/clef", "http://h/ai/run/@cf/cloudflare/clef")]
#[case("a b?c#d%e:é", "http://h/ai/run/a%20b%3Fc%23d%25e%3A%C3%A9")]
#[case("{model}", "http://h/ai/run/%7Bmodel%7D")]
fn address_encodes_model_name(#[case] model: &str, #[case] expected: &str) {
    let address = Address::new("http://h", "ai/run/{model}").unwrap();
    assert_eq!(address.of(model).unwrap().to_string(), expected);
}

#[test]
fn model_name_is_sent_in_configured_location() {
    let name = "@cf/cloudflare/clef";
    let places = [ModelLocation::Body, ModelLocation::Path, ModelLocation::Both].map(|place| place.in_body(name));
    assert_eq!(places, [Some(name), None, Some("clef")]);
    assert_eq!(ModelLocation::Both.in_body("clef"), Some("clef"));
}

#[rstest]
#[case(Wire::SystemOne, "systemone", "authorization", "Bearer k-1")]
#[case(Wire::OpenAiDecisions, "decisions", "authorization", "Bearer k-1")]
#[case(Wire::GeminiDecisions, "decisions", "x-goog-api-key", "k-1")]
#[case(Wire::SglangDecisions, "decisions", "authorization", "Bearer k-1")]
#[case(Wire::ChatCompletions, "chat/completions", "authorization", "Bearer k-1")]
fn settings_have_defaults_of_wire(#[case] wire: Wire, #[case] path: &str, #[case] header: &str, #[case] value: &str) {
    let settings = settings(wire);
    assert_eq!(settings.path, path);
    let headers = headers(&settings).unwrap();
    assert_eq!(headers.len(), 1);
    assert_eq!(headers[header], value);
    assert!(headers[header].is_sensitive());
}

#[test]
fn headers_contain_scheme_and_additional_headers() {
    let settings = ProviderSettings {
        auth_scheme: "Basic".to_owned(),
        headers: vec![("TypeSafe-Danger-Zone-Images".to_owned(), " true".to_owned())],
        ..settings(Wire::SystemOne)
    };
    let headers = headers(&settings).unwrap();
    assert_eq!(headers["authorization"], "Basic k-1");
    assert_eq!(headers["typesafe-danger-zone-images"], "true");
    let keyless = ProviderSettings { api_key: None, ..settings };
    assert!(!super::headers(&keyless).unwrap().contains_key("authorization"));
}

#[rstest]
#[case("content-type", "x")]
#[case("Host", "x")]
#[case("Authorization", "Bearer other")]
#[case("api-key", "other")]
#[case("a b", "x")]
#[case("x-a", "a\nb")]
#[case("x-a", "é")]
fn headers_rejects_reserved_or_invalid_header(#[case] name: &str, #[case] value: &str) {
    let settings = ProviderSettings {
        auth_header: "api-key".to_owned(),
        headers: vec![(name.to_owned(), value.to_owned())],
        ..settings(Wire::SystemOne)
    };
    assert_eq!(headers(&settings).unwrap_err(), ProviderSettingsError::Header);
}

#[rstest]
#[case("content-length", "")]
#[case("a b", "")]
#[case("", "")]
#[case("x-key", "two words")]
fn headers_rejects_invalid_auth_header_or_scheme(#[case] auth_header: &str, #[case] auth_scheme: &str) {
    let settings = ProviderSettings {
        auth_header: auth_header.to_owned(),
        auth_scheme: auth_scheme.to_owned(),
        ..settings(Wire::SystemOne)
    };
    assert_eq!(headers(&settings).unwrap_err(), ProviderSettingsError::AuthHeader);
}

#[test]
fn headers_rejects_key_with_invalid_characters() {
    for bad in ["", "a b", "a\nb", "é"] {
        let settings = ProviderSettings { api_key: Some(SecretString::new(bad)), ..settings(Wire::SystemOne) };
        assert_eq!(headers(&settings).unwrap_err(), ProviderSettingsError::ApiKey, "{bad:?}");
    }
}
