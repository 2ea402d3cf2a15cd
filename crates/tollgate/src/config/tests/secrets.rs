//! Secrets are read from their locations and never shown.

use super::*;

#[test]
fn secret_in_file_is_rejected_and_not_shown() {
    let message = fault(&format!("{PROVIDER}api_key = \"sk-very-secret\"\n"));
    assert!(message.contains("\"env:NAME\"") && message.contains("line 4"), "{message}");
    assert!(!message.contains("sk-very-secret"));
    let variable = with(&[("TOLLGATE__PROVIDERS__0__API_KEY", "sk-very-secret")], PROVIDER).unwrap_err().to_string();
    assert!(variable.contains("\"file:PATH\"") && !variable.contains("sk-very-secret"));
    let broken = fault(&format!("{PROVIDER}api_key = \"sk-very-secret\n"));
    assert!(broken.contains("line 4") && !broken.contains("sk-very-secret"), "{broken}");
}

#[test]
fn secrets_are_read_from_variable_and_file() {
    let variables: Environment = [("KEY", " sk-1 "), ("EMPTY", ""), ("BROKEN", "a b")].into_iter().collect();
    let secret = |source| NamedSecret::new("api_key", source, &variables);
    let of = |name: &str| secret(SecretSource::Variable(name.to_owned())).read();
    assert_eq!(of("KEY").unwrap().expose(), "sk-1");
    for (unset, shown) in [("EMPTY", ": EMPTY"), ("A_9", ": A_9"), ("sk_very_secret", ""), ("SK_very_secret", "")] {
        assert_eq!(
            of(unset).unwrap_err().to_string(),
            format!("api_key names an environment variable that is not set, or empty{shown}")
        );
    }
    let broken = of("BROKEN").unwrap_err().to_string();
    assert!(!broken.contains("a b") && broken.contains("holds no secret"), "{broken}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let file = secret(SecretSource::File(path.clone()));
    assert!(file.read().unwrap_err().to_string().contains("cannot be read"));
    std::fs::write(&path, "sk-2\n").unwrap();
    assert_eq!(file.read().unwrap().expose(), "sk-2");
    for wrong in ["sk-very-secret", "sk-very-secret\0", &"sk-very-secret".repeat(1000)] {
        let message = secret(SecretSource::File(wrong.into())).read().unwrap_err().to_string();
        assert!(message.starts_with("api_key names a file that cannot be read"), "{message}");
        assert!(!message.contains("sk-very-secret"), "{message}");
    }
    assert!(!format!("{file:?} {:?}", SecretSource::Variable("sk-very-secret".to_owned())).contains("very"));
}

/// Checks secrets in keys for locations, in the file and in variables, and in invalid TOML.
#[test]
fn messages_do_not_contain_possible_secrets() {
    let silent = |message: String, what: &str| {
        assert!(!message.contains("very-secret") && !message.contains("very_secret"), "{what}: {message}");
        message
    };
    for value in [
        "sk-very-secret",
        "sk very-secret",
        "9sk_very_secret",
        "$(sk-very-secret)",
        "",
        "env:sk very-secret",
        "env:9sk_very_secret",
        "sk.very-secret",
    ] {
        let expected = "providers[0].api_key must be \"env:NAME\", the name of an environment variable";
        let lines = format!("{PROVIDER}api_key = \"{value}\"\n");
        let message = silent(fault(&lines), value);
        assert!(message.contains("line 4") && message.contains(expected), "{message}");
        let variables = [("TOLLGATE__PROVIDERS__0__API_KEY", value)];
        let message = silent(with(&variables, PROVIDER).unwrap_err().to_string(), value);
        assert!(message.contains("TOLLGATE__PROVIDERS__0__API_KEY") && message.contains(expected), "{message}");
    }
    for name in ["A", "_", "key_2", "OPENAI_API_KEY"] {
        assert!(read(&format!("{PROVIDER}api_key = \"env:{name}\"\n")).is_ok(), "{name}");
    }
    for (variable, value) in [
        ("TOLLGATE__PROVIDERS__0__AUTH_HEADER", "Bearer sk-very-secret"),
        ("TOLLGATE__PROVIDERS__0__AUTH_SCHEME", "Bearer sk-very-secret"),
        ("TOLLGATE__PROVIDERS__0__HEADERS", "[\"sk-very-secret\"]"),
        ("TOLLGATE__PROVIDERS__0__HEADERS", "[\"sk-very-secret"),
        ("TOLLGATE__PROVIDERS__0__BASE_URL", "https://sk-very-secret@h/"),
        ("TOLLGATE__TELEMETRY__OTLP_SECRET_HEADERS", "sk-very-secret"),
    ] {
        let text = format!("{PROVIDER}[telemetry]\notlp_url = \"http://h\"\n");
        silent(with(&[(variable, value)], &text).unwrap_err().to_string(), variable);
    }
    for broken in [
        "api_key = sk-very-secret",
        "api_key = \"sk-very-secret",
        "api_key = \"sk-very-secret\\q\"",
        "api_key = 'sk-very-secret' 'sk-very-secret'",
        "api_key = \"\"\"sk-very-secret",
        "api_key = [\"sk-very-secret\"]",
        "api_key = { sk-very-secret = 1 }",
        "api_key.sk-very-secret = 1",
        "sk-very-secret",
        "sk.very-secret.1 = 2",
        "\"sk very-secret\" = 1\n\"sk very-secret\" = 1",
        "\"sk very-secret\" = 1",
        "[\"sk very-secret\"]",
        "api_key: sk-very-secret",
    ] {
        let message = silent(fault(&format!("{PROVIDER}{broken}\n")), broken);
        assert!(message.starts_with("tollgate.toml, line "), "{broken}: {message}");
    }
}
