use std::path::Path;
use std::time::Duration;

use api_actix::{AdmissionSettings, WireNames};

use super::*;

mod bucket;
mod documentation;
mod routing;
mod secrets;
mod upstreams;

fn no_variables() -> Environment {
    Environment::default()
}

fn read(text: &str) -> Result<Config, ConfigError> {
    load_text(None, text, &no_variables())
}

fn fault(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn with(variables: &[(&str, &str)], text: &str) -> Result<Config, ConfigError> {
    load_text(None, text, &variables.iter().copied().collect())
}

const PROVIDER: &str = "[[providers]]\nslug = \"typesafe\"\nbase_url = \"https://api.example/v1/\"\n";

#[test]
fn every_key_has_a_default() {
    let config = read("").unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.server.base_path, "/api/v1");
    assert_eq!(config.server.wire_names, WireNames::Interface);
    assert_eq!(config.server.workers, None);
    assert_eq!(config.storage.file.to_str(), Some("tollgate-data/tollgate.db"));
    assert_eq!(config.blobs.folder().unwrap().root.to_str(), Some("tollgate-data/blobs"));
    assert_eq!(config.limits.max_json_bytes, 8 * 1024 * 1024);
    assert_eq!(config.limits.max_file_bytes, 104_857_600);
    assert_eq!(config.limits.workspace_quota_bytes, 10_737_418_240);
    assert_eq!(config.blobs.folder().unwrap().quiet_period, Duration::from_millis(100));
    assert_eq!(config.max_stale_keys, Duration::from_secs(30));
    assert_eq!(config.limits.workspace_record_bytes_per_day, Some(1 << 30));
    assert!(config.limits.key_rates.is_none() && config.limits.workspace_rates.is_none());
    assert_eq!(config.server.metrics_listen, None);
    assert_eq!(config.limits.request_timeout, Duration::from_mins(1));
    assert_eq!(config.server.drain_period, Duration::from_secs(5));
    // No request exceeds its deadline.
    assert_eq!(config.server.shutdown_timeout, Duration::from_secs(65));
    let connection = config.server.connection;
    assert_eq!((connection.send_buffer_bytes, connection.header_timeout), (524_288, Duration::from_secs(10)));
    assert_eq!((connection.linger_timeout, connection.linger_bytes), (Duration::from_secs(2), 32 << 20));
    assert_eq!(config.sandbox, SandboxConfig { enabled: true, errors: false });
    assert!(config.providers.is_empty() && config.endpoints.is_empty());
}

#[test]
fn every_key_is_read() {
    let config = read(
        r#"
        [server]
        listen = "0.0.0.0:9000"
        base_path = "/gateway/v1/"
        wire_names = "openrouter"
        workers = 3
        keep_alive_ms = 6
        max_connections_per_worker = 5
        drain_ms = 10
        shutdown_timeout_ms = 11
        metrics_listen = "127.0.0.1:9100"
        [storage]
        url = "sqlite:///var/lib/tollgate/t.db?mode=ro"
        synchronous = "full"
        busy_timeout_ms = 100
        [keys]
        max_stale_ms = 0
        [journal]
        max_bytes = 67_108_864
        [blobs]
        url = "file:/var/lib/tollgate/blobs"
        quiet_period_ms = 21
        [limits]
        max_json_bytes = 1_000
        max_file_bytes = 5368709120
        workspace_quota_bytes = 0
        requests_per_minute = 60
        tokens_per_minute = 61
        workspace_requests_per_minute = 62
        workspace_tokens_per_minute = 63
        max_in_flight = 10
        request_timeout_ms = 5000
        [sandbox]
        enabled = true
        errors = true
        [log]
        format = "json"
        [[providers]]
        slug = "typesafe"
        name = "TypeSafe"
        wire = "system-one"
        base_url = "http://127.0.0.1:9/v1"
        path = "/decide"
        api_key = "env:TYPESAFE_API_KEY"
        attempt_timeout_ms = 2
        ca_file = "ca.pem"
        http2_prior_knowledge = true
        [[endpoints]]
        model = "typesafe/Jev-1.14"
        provider = "typesafe"
        upstream_model = "jev-1.14.0"
        input_usd_per_million_tokens = "0.042"
        output_usd_per_million_tokens = "0"
        prompt_overhead_tokens = 7
        "#,
    )
    .unwrap();
    assert_eq!(config.server.base_path, "/gateway/v1");
    let connection = config.server.connection;
    assert_eq!((connection.write_timeout.as_secs(), connection.keep_alive.as_millis()), (30, 6));
    assert_eq!(config.server.max_connections_per_worker, 5);
    assert_eq!((config.server.drain_period.as_millis(), config.server.shutdown_timeout.as_millis()), (10, 11));
    assert_eq!(config.server.metrics_listen.unwrap().port(), 9_100);
    assert_eq!(config.storage.file.to_str(), Some("/var/lib/tollgate/t.db"));
    assert!(config.storage.synchronous_full);
    assert_eq!(config.sandbox, SandboxConfig { enabled: true, errors: true });
    assert_eq!(config.limits.max_file_bytes, 5_368_709_120);
    assert_eq!(config.limits.workspace_quota_bytes, 0);
    assert_eq!(config.blobs.folder().unwrap().quiet_period, Duration::from_millis(21));
    assert_eq!(config.max_stale_keys, Duration::ZERO);
    assert_eq!(config.journal.max_bytes, 64 << 20);
    let rates = |rates: domain::rate::RateLimits| (rates.requests_per_minute, rates.tokens_per_minute);
    assert_eq!(rates(config.limits.key_rates), (Some(60), Some(61)));
    assert_eq!(rates(config.limits.workspace_rates), (Some(62), Some(63)));
    assert_eq!(config.log.format, LogFormat::Json);
    let provider = &config.providers[0];
    assert_eq!(provider.path.as_deref(), Some("decide"));
    assert_eq!(provider.secret_variable(), Some("TYPESAFE_API_KEY"));
    assert!(provider.http2_prior_knowledge && provider.ca_file.is_some());
    let endpoint = &config.endpoints[0];
    assert_eq!((endpoint.model.as_str(), endpoint.prompt_overhead_tokens), ("typesafe/jev-1.14", 7));
    assert_eq!(endpoint.prices.unwrap().prompt.to_string(), "0.000000042");
}

#[test]
fn shares_are_half_of_the_whole() {
    let admission = |text: &str| read(text).unwrap().limits.admission;
    let default = admission("");
    assert_eq!((default.max_in_flight, default.max_in_flight_per_key), (4_096, 2_048));
    assert_eq!(default.max_in_flight_per_workspace, 2_048);
    assert_eq!((default.body_memory_bytes, default.body_memory_bytes_per_workspace), (256 << 20, 128 << 20));
    let single = admission("[limits]\nmax_in_flight = 1\nmax_json_bytes = 100_000_000\n");
    assert_eq!((single.max_in_flight_per_key, single.max_in_flight_per_workspace), (1, 1));
    assert_eq!(single.body_memory_bytes, 800_000_000, "large bodies need more by default");
    let configured = admission("[limits]\nmax_in_flight = 9\nmax_json_bytes = 10\nbody_memory_bytes = 100\n");
    let expected = AdmissionSettings {
        max_in_flight: 9,
        max_in_flight_per_key: 4,
        max_in_flight_per_workspace: 4,
        body_memory_bytes: 100,
        body_memory_bytes_per_workspace: 50,
    };
    assert_eq!(configured, expected);
}

#[test]
fn unknown_key_error_names_similar_key_and_line() {
    assert_eq!(
        fault("\n[server]\nlisten = \"127.0.0.1:1\"\nbase_paht = \"/x\"\n"),
        "tollgate.toml, line 4: unknown key server.base_paht; the nearest known one is server.base_path"
    );
    assert_eq!(
        fault("[limit]\nmax_json_bytes = 1\n"),
        "tollgate.toml, line 1: unknown section limit; the nearest known one is limits"
    );
    assert_eq!(
        fault("[[providers]]\nslugg = \"a\"\n"),
        "tollgate.toml, line 2: unknown key providers.slugg; the nearest known one is providers.slug"
    );
    assert_eq!(
        fault("serverr = 1\n"),
        "tollgate.toml, line 1: unknown section serverr; the nearest known one is server"
    );
}

#[test]
fn renamed_keys_are_unknown() {
    for (text, expected) in [
        ("[broadcast]\ntimeout_ms = 1\n", "unknown section broadcast"),
        ("[endpoints]\ntoken_overhead = 1\n", "endpoints must be [[endpoints]] tables"),
        ("[[endpoints]]\ntoken_overhead = 1\n", "unknown key endpoints.token_overhead"),
        ("[[models]]\ncoalesce = \"each\"\n", "unknown key models.coalesce"),
        ("[[providers]]\nenvelope = \"none\"\n", "unknown key providers.envelope"),
        ("[[providers]]\nimages = \"none\"\n", "unknown key providers.images"),
        ("[money]\nunpriced = \"free\"\n", "the nearest known one is money.unpriced_models"),
        ("[server]\nhead_timeout_ms = 1\n", "unknown key server.head_timeout_ms"),
        ("[storage]\nmax_page_count = 1\n", "unknown key storage.max_page_count"),
        ("[storage]\nencryption_key_env = \"A\"\n", "the nearest known one is storage.encryption_key"),
        ("[[providers]]\napi_key_env = \"A\"\n", "the nearest known one is providers.api_key"),
        ("[rate_limits]\npassword_file = \"a\"\n", "the nearest known one is rate_limits.password"),
    ] {
        let message = fault(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn unknown_variable_error_names_similar_variable() {
    assert_eq!(
        with(&[("TOLLGATE__SERVER__LISEN", "x")], "").unwrap_err().to_string(),
        "environment variable TOLLGATE__SERVER__LISEN: unknown key server.lisen; the nearest known one is \
         TOLLGATE__SERVER__LISTEN"
    );
    assert!(with(&[("TOLLGATE__SERVR__LISTEN", "x")], "").unwrap_err().to_string().ends_with("is server"));
    assert!(
        with(&[("TOLLGATE__PROVIDERS__SLUG", "x")], "")
            .unwrap_err()
            .to_string()
            .contains("TOLLGATE__PROVIDERS__0__KEY")
    );
}

#[test]
fn variable_with_single_underscores_is_an_error_that_names_the_right_variable() {
    for (variable, right) in [
        ("TOLLGATE_SERVER_LISTEN", "TOLLGATE__SERVER__LISTEN"),
        ("TOLLGATE__SERVER_LISTEN", "TOLLGATE__SERVER__LISTEN"),
        ("TOLLGATE_SERVER__LISTEN", "TOLLGATE__SERVER__LISTEN"),
        ("TOLLGATE___SERVER__LISTEN", "TOLLGATE__SERVER__LISTEN"),
        ("TOLLGATE_server_listen", "TOLLGATE__SERVER__LISTEN"),
        ("TOLLGATE_LIMITS_MAX_JSON_BYTES", "TOLLGATE__LIMITS__MAX_JSON_BYTES"),
        ("TOLLGATE_KEYS_MAX_STALE_MS", "TOLLGATE__KEYS__MAX_STALE_MS"),
        ("TOLLGATE_PROVIDERS_12_BASE_URL", "TOLLGATE__PROVIDERS__12__BASE_URL"),
        ("TOLLGATE_PROVIDERS_BASE_URL", "TOLLGATE__PROVIDERS__0__BASE_URL"),
    ] {
        let message = with(&[(variable, "sk-very-secret")], "").unwrap_err().to_string();
        let expected = format!(
            "environment variable {variable} is not a setting: use {right}, with two underscores between the parts"
        );
        assert_eq!(message, expected);
    }
    for other in
        ["TOLLGATE_HOME", "TOLLGATE_KEY", "TOLLGATE_KEY_ID", "TOLLGATE_SERVER", "TOLLGATE_", "TOLLGATE_SERVER_NAME"]
    {
        assert!(with(&[(other, "x")], "").is_ok(), "{other}");
    }
    assert_eq!(with(&[("TOLLGATE__server__workers", "3")], "").unwrap().server.workers, Some(3));
}

#[test]
fn relative_path_in_file_is_relative_to_its_folder() {
    let text = format!(
        "{PROVIDER}ca_file = \"tls/ca.pem\"\napi_key = \"file:../keys/p\"\n\
         [storage]\nurl = \"sqlite://data/t.db?mode=ro\"\n[blobs]\nurl = \"file:data/blobs\"\n"
    );
    let at = |file: &str| load_text(Some(std::path::Path::new(file)), &text, &no_variables()).unwrap();
    let config = at("/etc/a b%?/tollgate.toml");
    assert_eq!(config.storage.file.to_str(), Some("/etc/a b%?/data/t.db"));
    assert_eq!(config.storage.url.as_str(), "sqlite:///etc/a b%25%3F/data/t.db?mode=ro");
    assert!(config.storage.read_only);
    assert_eq!(config.blobs.folder().unwrap().root.to_str(), Some("/etc/a b%?/data/blobs"));
    assert_eq!(config.journal.path.to_str(), Some("/etc/a b%?/data/t-journal"), "beside the database");
    assert_eq!(config.providers[0].ca_file.as_deref().unwrap().to_str(), Some("/etc/a b%?/tls/ca.pem"));
    let (_, file) = config.providers[0].api_key.as_ref().and_then(NamedSecret::file).unwrap();
    assert_eq!(file.to_str(), Some("/etc/a b%?/../keys/p"));
    assert_eq!(at("conf/t.toml").storage.url.as_str(), "sqlite://conf/data/t.db?mode=ro");
    assert_eq!(at("tollgate.toml").blobs.folder().unwrap().root.to_str(), Some("data/blobs"));
    let journal = "[journal]\npath = \"j\"\n";
    let config = load_text(Some(std::path::Path::new("/etc/t.toml")), journal, &no_variables()).unwrap();
    assert_eq!(config.journal.path.to_str(), Some("/etc/j"));
    assert_eq!(config.storage.file.to_str(), Some("tollgate-data/tollgate.db"), "a default is not in the file");
    let server = "[storage]\nurl = \"postgres://u@h/d\"\n";
    let config = load_text(Some(std::path::Path::new("/etc/t.toml")), server, &no_variables()).unwrap();
    assert_eq!(config.storage.file.to_str(), Some("tollgate-data/tollgate"), "files of this machine have a default");
    assert_eq!(config.journal.path.to_str(), Some("tollgate-data/tollgate-journal"));
}

#[test]
fn absolute_paths_and_paths_in_variables_do_not_depend_on_the_file() {
    let absolute =
        "[storage]\nurl = \"sqlite:///var/t.db\"\n[blobs]\nurl = \"file:/var/b\"\n[journal]\npath = \"/var/j\"\n";
    let file = Some(std::path::Path::new("/etc/tollgate.toml"));
    let config = load_text(file, absolute, &no_variables()).unwrap();
    assert_eq!((config.storage.url.as_str(), config.storage.file.to_str()), ("sqlite:///var/t.db", Some("/var/t.db")));
    assert_eq!(
        (config.blobs.folder().unwrap().root.to_str(), config.journal.path.to_str()),
        (Some("/var/b"), Some("/var/j"))
    );
    let variables: Environment = [
        ("TOLLGATE__STORAGE__URL", "sqlite://t.db"),
        ("TOLLGATE__BLOBS__URL", "file:b"),
        ("TOLLGATE__JOURNAL__PATH", "j"),
        ("TOLLGATE__PROVIDERS__0__CA_FILE", "ca.pem"),
    ]
    .into_iter()
    .collect();
    let config = load_text(file, &format!("{PROVIDER}{absolute}"), &variables).unwrap();
    assert_eq!((config.storage.url.as_str(), config.storage.file.to_str()), ("sqlite://t.db", Some("t.db")));
    assert_eq!((config.blobs.folder().unwrap().root.to_str(), config.journal.path.to_str()), (Some("b"), Some("j")));
    assert_eq!(config.providers[0].ca_file.as_deref().unwrap().to_str(), Some("ca.pem"));
}

#[test]
fn variables_override_file() {
    let variables = [
        ("TOLLGATE__SERVER__LISTEN", "127.0.0.1:2"),
        ("TOLLGATE__LIMITS__MAX_JSON_BYTES", "1_024"),
        ("TOLLGATE__SANDBOX__ENABLED", "true"),
        ("TOLLGATE__STORAGE__URL", "\"sqlite://quoted.db\""),
        ("TOLLGATE__PROVIDERS__0__BASE_URL", "https://other.example/v1"),
        ("TOLLGATE__ENDPOINTS__0__MODEL", "a/b"),
        ("TOLLGATE__ENDPOINTS__0__PROVIDER", "typesafe"),
        ("TOLLGATE__ENDPOINTS__0__UPSTREAM_MODEL", "1"),
        ("TOLLGATE__ENDPOINTS__0__INPUT_USD_PER_MILLION_TOKENS", "0.042"),
        ("TOLLGATE__ENDPOINTS__0__OUTPUT_USD_PER_MILLION_TOKENS", "0"),
    ];
    let config = with(&variables, &format!("{PROVIDER}[server]\nlisten = \"127.0.0.1:1\"\n")).unwrap();
    assert_eq!(config.server.listen.port(), 2);
    assert_eq!(config.limits.max_json_bytes, 1_024);
    assert!(config.sandbox.enabled && !config.sandbox.errors);
    assert_eq!(config.storage.file.to_str(), Some("quoted.db"));
    assert_eq!(config.providers[0].base_url, "https://other.example/v1");
    assert_eq!(config.providers[0].slug.as_str(), "typesafe");
    assert_eq!(config.endpoints[0].upstream_model, "1");
    let gap = with(&[("TOLLGATE__PROVIDERS__2__SLUG", "x")], PROVIDER).unwrap_err().to_string();
    assert_eq!(gap, "providers[2] is set but providers[1] is not");
}

#[test]
fn wrong_value_in_file_is_an_error_even_if_a_variable_overrides_it() {
    let error = with(&[("TOLLGATE__SERVER__LISTEN", "127.0.0.1:1")], "[server]\nlisten = 7\n").unwrap_err();
    assert_eq!(error.to_string(), "tollgate.toml, line 2: server.listen must be a string");
}

#[test]
fn wrong_kind_error_names_origin() {
    assert_eq!(fault("[server]\nlisten = 8080\n"), "tollgate.toml, line 2: server.listen must be a string");
    assert!(fault("[limits]\nmax_json_bytes = -1\n").ends_with("must be a whole number, zero or more"));
    assert!(fault("[limits]\nrequests_per_minute = 0\n").ends_with("must be 1 to 4294967295"));
    assert!(fault("[limits]\nmax_json_bytes = 0\n").ends_with("must be more than 0"));
    assert!(fault("[limits]\nmax_in_flight = 0\n").ends_with("must be more than 0"));
    let small = fault("[limits]\nmax_json_bytes = 1000\nbody_memory_bytes = 7998\n");
    assert!(small.contains("body_memory_bytes gives 7998 bytes and must give at least 8000"), "{small}");
    for key in ["requests_per_minute", "tokens_per_minute", "workspace_tokens_per_minute"] {
        for number in ["0", "5000000000"] {
            let said = fault(&format!("[limits]\n{key} = {number}\n"));
            assert!(said.ends_with("must be 1 to 4294967295"), "{said}");
        }
    }
    assert!(fault("[server]\nmax_connections_per_worker = 0\n").ends_with("must be more than 0"));
    assert!(fault("[server]\nkeep_alive_ms = 0\n").ends_with("must be more than 0"));
    assert!(fault("[server]\ndrain_ms = 600001\n").ends_with("must be 0 to 600000"));
    assert!(fault("[server]\nshutdown_timeout_ms = 3600001\n").ends_with("must be 0 to 3600000"));
    assert!(fault("[server]\nmetrics_listen = \"here\"\n").contains("must be an address and a port"));
    assert!(fault("[sandbox]\nenabled = \"yes\"\n").ends_with("must be true or false"));
    assert!(fault("[log]\nformat = \"xml\"\n").ends_with("must be text or json"));
    for wrong in
        ["{}", "{ json = {} }", "{ path = 1 }", "1979-05-27", "07:32:00", "inf", "99999999999999999999", "[{}]"]
    {
        for (key, expected) in [
            ("[log]\nformat", "log.format must be a string"),
            ("[server]\nlisten", "server.listen must be a string"),
            ("[server]\nworkers", "server.workers must be a whole number, zero or more"),
            ("[server]\ntrusted_proxies", "server.trusted_proxies must be an array of strings"),
            ("[sandbox]\nenabled", "sandbox.enabled must be true or false"),
            ("[money]\nunpriced_models", "money.unpriced_models must be a string"),
            ("[storage]\nencryption_key", "storage.encryption_key must be a string"),
            ("[[providers]]\nmodel_location", "providers[0].model_location must be a string"),
            ("[[providers]]\nname", "providers[0].name must be a string"),
        ] {
            assert_eq!(fault(&format!("{key} = {wrong}\n")), format!("tollgate.toml, line 2: {expected}"), "{wrong}");
        }
        let element = fault(&format!("[[providers]]\nheaders = [\"x-a: 1\", {wrong}]\n"));
        assert_eq!(element, "tollgate.toml, line 2: providers[0].headers must be an array of strings");
        let variable = with(&[("TOLLGATE__SERVER__WORKERS", wrong)], "").unwrap_err().to_string();
        assert!(variable.ends_with(": server.workers must be a whole number, zero or more"), "{variable}");
        let variable = with(&[("TOLLGATE__LOG__FORMAT", wrong)], "").unwrap_err().to_string();
        assert!(variable.ends_with(": log.format must be text or json"), "{variable}");
    }
    for (text, expected) in [("04", 4), (" 0_4 ", 4), ("1_6", 16)] {
        let config = with(&[("TOLLGATE__SERVER__WORKERS", text)], "").unwrap();
        assert_eq!(config.server.workers, Some(expected), "{text:?}");
    }
    assert!(fault("[providers]\nslug = \"a\"\n").ends_with("must be [[providers]] tables"));
    assert!(fault("server = 1\n").ends_with("must be a table: [server]"));
    let wrong = with(&[("TOLLGATE__SANDBOX__ENABLED", "maybe")], "").unwrap_err().to_string();
    assert_eq!(wrong, "environment variable TOLLGATE__SANDBOX__ENABLED: sandbox.enabled must be true or false");
}

#[test]
fn sandbox_is_off_by_default_beside_a_provider() {
    let sandbox = |text: &str| read(text).unwrap().sandbox;
    assert_eq!(sandbox(""), SandboxConfig { enabled: true, errors: false });
    assert_eq!(sandbox(PROVIDER), SandboxConfig { enabled: false, errors: false });
    assert!(sandbox(&format!("{PROVIDER}[sandbox]\nenabled = true\n")).enabled);
    assert!(sandbox("[sandbox]\nerrors = true\n").errors);
    let off = fault("[sandbox]\nenabled = false\nerrors = true\n");
    assert!(off.ends_with("sandbox.errors requires sandbox.enabled = true"), "{off}");
    let beside = fault(&format!("{PROVIDER}[sandbox]\nerrors = true\n"));
    assert!(
        beside.ends_with("requires sandbox.enabled = true, which is off by default beside [[providers]]"),
        "{beside}"
    );
}

#[test]
fn unsupported_stores_are_rejected() {
    assert!(fault("[storage]\nurl = \"postgres://h\"\n").contains("postgres://user:password@host:port/database"));
    assert!(fault("[blobs]\nurl = \"gs://bucket/prefix\"\n").contains("s3://bucket/prefix"));
    assert!(fault("[storage]\nurl = \"mysql://h\"\n").contains("sqlite://path"));
    assert!(fault("[storage]\nurl = \"sqlite::memory:\"\n").contains("sqlite://path"));
}

#[test]
fn password_of_database_is_in_no_message() {
    let text = "[storage]\nurl = \"postgres://tollgate:s3cret@db.internal:5433/gateway?sslmode=disable\"\n";
    let config = load_text(None, text, &Environment::default()).unwrap();
    assert_eq!(config.storage.name(), "postgres://db.internal:5433/gateway");
    assert_eq!(config.storage.url.as_str(), "postgres://tollgate:s3cret@db.internal:5433/gateway?sslmode=disable");
    assert!(!config.storage.is_file() && !format!("{config:?}").contains("s3cret"));
    assert_eq!(config.journal.path, Path::new("tollgate-data/tollgate-journal"));
    for url in
        ["postgres://u:pa/ss@h", "postgres://u:ab/cd?ef@h/d", "postgres://u:p@q@h/d", "postgres://u:s3cret@h:x/d"]
    {
        let message = fault(&format!("[storage]\nurl = \"{url}\"\n"));
        assert!(
            message.contains("percent-encoded") && !message.contains("s3cret") && !message.contains("pa/ss"),
            "{message}"
        );
    }
    let message = fault("[storage]\nurl = \"postgres://u@h/d?pasword=s3cret\"\n");
    assert!(message.contains("unknown parameter") && !message.contains("s3cret"), "{message}");
    let socket = "[storage]\nurl = \"postgres:///gateway?host=/run/postgresql\"\n";
    let config = load_text(None, socket, &Environment::default()).unwrap();
    assert_eq!(config.storage.name(), "postgres:///gateway");
}

#[test]
fn endpoints_must_match_their_providers() {
    assert!(fault(&format!("{PROVIDER}{PROVIDER}")).contains("duplicate provider slug: \"typesafe\""));
    assert!(fault("[[providers]]\nslug = \"sandbox\"\nbase_url = \"http://h\"\n").contains("reserved"));
    assert_eq!(fault("[[providers]]\nslug = \"a\"\n"), "providers[0].base_url is required and must not be empty");
    assert!(fault("[[providers]]\nslug = \"A b\"\nbase_url = \"http://h\"\n").contains("a provider slug is"));
    for url in ["ftp://h", "h", "https://user:word@h/v1", "https://h/?q=1", "https://h/#f", "https://h/{model}"] {
        let message = fault(&format!("[[providers]]\nslug = \"a\"\nbase_url = \"{url}\"\n"));
        assert!(message.contains("http:// or https://"), "{url}: {message}");
        assert!(!message.contains("word"));
    }
    let endpoint = |rest: &str| format!("{PROVIDER}[[endpoints]]\nmodel = \"a/b\"\nupstream_model = \"b\"\n{rest}");
    assert!(
        fault(&endpoint("provider = \"typesave\"\n")).ends_with("one of the [[providers]]; the nearest is typesafe")
    );
    assert!(
        fault(&endpoint("provider = \"typesafe\"\ninput_usd_per_million_tokens = \"-1\"\n")).contains("zero or more")
    );
    assert!(
        fault(&endpoint("provider = \"typesafe\"\ninput_usd_per_million_tokens = \"1\"\n"))
            .contains("requires output_usd_per_million_tokens")
    );
    assert!(read(&endpoint("provider = \"typesafe\"\n")).unwrap().endpoints[0].prices.is_none());
    let sandbox =
        format!("{PROVIDER}[[endpoints]]\nmodel = \"Sandbox/x\"\nupstream_model = \"b\"\nprovider = \"typesafe\"\n");
    assert!(fault(&sandbox).contains("reserved"));
}

#[test]
fn base_path_rejects_special_characters() {
    for (text, path) in [("/", ""), ("", ""), ("/v1/", "/v1"), ("/a/b.c", "/a/b.c")] {
        let config = with(&[("TOLLGATE__SERVER__BASE_PATH", text)], "").unwrap();
        assert_eq!(config.server.base_path, path);
    }
    for text in ["v1", "/a//b", "/..", "/a{b}", "/a b"] {
        assert!(with(&[("TOLLGATE__SERVER__BASE_PATH", text)], "").is_err(), "{text}");
    }
}

#[test]
fn explicit_file_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.toml");
    assert!(load(Some(&path), &no_variables()).unwrap_err().to_string().contains("cannot be read"));
    for text in ["[server]\nworkers = 2\n", "\u{feff}[server]\nworkers = 2\n"] {
        std::fs::write(&path, text).unwrap();
        let config = load(Some(&path), &no_variables()).unwrap();
        assert_eq!((config.server.workers, config.file), (Some(2), Some(path.clone())));
    }
}

#[test]
fn proxies_are_read_and_redacted() {
    let config = with(&[("https_proxy", "http://u:word@p:1"), ("NO_PROXY", "localhost")], "").unwrap();
    assert_eq!(config.proxy.https_proxy.as_deref(), Some("http://u:word@p:1"));
    assert_eq!(config.proxy.no_proxy.as_deref(), Some("localhost"));
    assert!(!format!("{config:?}").contains("word"));
    let both = with(&[("no_proxy", "b.test"), ("NO_PROXY", "a.test")], "").unwrap();
    assert_eq!(both.proxy.no_proxy.as_deref(), Some("a.test,b.test"));
    let unknown = |variables: &[(&str, &str)]| with(variables, "").unwrap().proxy.unknown_entries();
    assert!(unknown(&[("NO_PROXY", "a.*.test")]).is_empty(), "without a proxy it has no meaning");
    assert!(unknown(&[("http_proxy", "http://p:1"), ("NO_PROXY", "a.test:80 *")]).is_empty());
    assert_eq!(unknown(&[("HTTPS_PROXY", "http://p:1"), ("no_proxy", "b.test,a.*.test")]), ["a.*.test"]);
}

#[test]
fn trusted_proxies_accept_addresses_and_networks() {
    let listed = |variables: &[(&str, &str)], text: &str| {
        let config = with(variables, text);
        config.map(|config| config.server.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let expected = ["10.0.0.0/8", "::1/128"];
    assert_eq!(listed(&[], "[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]").unwrap(), expected);
    for value in ["10.0.0.0/8, ::1", "[\"10.0.0.0/8\", '::1']"] {
        assert_eq!(listed(&[("TOLLGATE__SERVER__TRUSTED_PROXIES", value)], "").unwrap(), expected);
    }
    for bad in ["[\"proxy.example\"]", "[1]", "\"::1\""] {
        let message = fault(&format!("[server]\ntrusted_proxies = {bad}"));
        assert!(message.contains("server.trusted_proxies must"), "{message}");
    }
}

#[test]
fn certificate_files_must_be_regular_in_every_section() {
    let telemetry = "[telemetry]\notlp_url = \"https://h\"\n";
    let rates = "[rate_limits]\nurl = \"rediss://h\"\n";
    let pair =
        |prefix: &str| format!("{prefix}client_cert_file = \"/dev/null\"\n{prefix}client_key_file = \"/dev/null\"\n");
    let parameters = "sslmode=verify-full&sslrootcert=/dev/null";
    for text in [
        format!("{PROVIDER}ca_file = \"/dev/null\"\n"),
        format!("{PROVIDER}{}", pair("")),
        format!("{telemetry}otlp_ca_file = \"/dev/null\"\n"),
        format!("{telemetry}{}", pair("otlp_")),
        format!("{rates}ca_file = \"/dev/null\"\n"),
        format!("{rates}{}", pair("")),
        format!("[storage]\nurl = \"postgres://u:p@h/d?{parameters}\"\n"),
    ] {
        let fault = fault(&text);
        assert!(fault.contains("/dev/null, which is no regular file"), "{text}: {fault}");
    }
}
