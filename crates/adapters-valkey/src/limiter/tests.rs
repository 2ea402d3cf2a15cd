use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::ids::{ApiKeyId, WorkspaceId};
use domain::rate::{RateLimits, RateScope};
use domain::testing::contract::RateLimiters;
use domain::testing::{FixedClock, FixedRateLimiter, MemoryRateLimiter};
use test_servers::Valkey;
use uuid::Uuid;

use super::*;
use crate::Credentials;

/// The server that cases share, each with a prefix of its own.
static SERVER: OnceLock<Valkey> = OnceLock::new();
static PREFIXES: AtomicU32 = AtomicU32::new(0);
/// A busy machine must not look like an outage.
const PATIENT: Duration = Duration::from_secs(10);

fn server() -> &'static Valkey {
    SERVER.get_or_init(|| start(&[]))
}

fn start(options: &[&str]) -> Valkey {
    Valkey::start_with(options).unwrap_or_else(|error| panic!("{error:#}"))
}

fn settings(server: &Valkey) -> ValkeySettings {
    ValkeySettings {
        host: server.address().ip().to_string(),
        port: server.address().port(),
        database: 0,
        is_tls: false,
        ca_file: None,
        client_identity: None,
        credentials: Credentials::default(),
        key_prefix: format!("test{}:", PREFIXES.fetch_add(1, Ordering::Relaxed)),
        timeout: PATIENT,
    }
}

async fn connect(settings: &ValkeySettings, fallback: Fallback) -> Result<ValkeyRateLimiter, ValkeyError> {
    ValkeyRateLimiter::connect(settings, fallback, TaskTracker::new()).await
}

async fn connected(settings: &ValkeySettings, fallback: Fallback) -> ValkeyRateLimiter {
    connect(settings, fallback).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A limiter whose script uses a fixed clock.
async fn empty_limiter() -> RateLimiters {
    let (clock, tasks) = (FixedClock::default(), TaskTracker::new());
    let script = RateScript::with_clock(Arc::new(clock.clone()));
    let limiter = ValkeyRateLimiter::with_script(&settings(server()), Fallback::Reject, tasks.clone(), script).await;
    let limiter = Arc::new(limiter.unwrap_or_else(|error| panic!("{error}")));
    let corrected = move || {
        let tasks = tasks.clone();
        tasks.close();
        Box::pin(async move {
            tasks.wait().await;
            tasks.reopen();
        }) as _
    };
    RateLimiters { limiter, clock, corrected: Box::new(corrected) }
}

domain::rate_limiter_contract!(
    #[tokio::test]
    crate::limiter::tests::empty_limiter
);

fn requests(limit: u32) -> RateLimits {
    RateLimits { requests_per_minute: Some(limit), tokens_per_minute: None }
}

const NONE: RateLimits = RateLimits { requests_per_minute: None, tokens_per_minute: None };

fn subject(number: u128, key: RateLimits, workspace: RateLimits) -> RateSubject {
    let workspace_id = WorkspaceId::from_uuid(Uuid::from_u128(1));
    RateSubject {
        api_key: ApiKeyId::from_uuid(Uuid::from_u128(number)),
        key,
        workspace: Some((workspace_id, workspace)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_share_one_limit_under_concurrency() {
    let settings = settings(server());
    let mut tasks = tokio::task::JoinSet::new();
    for replica in 0..4 {
        let limiter = connected(&settings, Fallback::Reject).await;
        for _ in 0..50 {
            let limiter = limiter.clone();
            let caller = subject(replica % 2, requests(60), requests(100));
            tasks.spawn(async move { limiter.count_request(&caller).await.is_ok() });
        }
    }
    let accepted = tasks.join_all().await.into_iter().filter(|accepted| *accepted).count();
    // A hundred a minute are one in 600 ms, which a busy machine may take.
    assert!((100..=110).contains(&accepted), "{accepted} were accepted");
}

/// Compares the script with the limiter in memory, over random limits, amounts and times.
#[tokio::test]
async fn script_computes_like_the_limiter_in_memory() {
    let shared = empty_limiter().await;
    let memory = MemoryRateLimiter::new(shared.clock.clone());
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let sizes = [1_u32, 7, 60, 1_000, 65_535, 65_537, 1_234_567, 4_294_967_295];
    for step in 0..600 {
        let limit = sizes[usize::try_from(random(8)).unwrap()];
        let limits = RateLimits { requests_per_minute: Some(limit), tokens_per_minute: Some(limit) };
        let caller = subject(random(3).into(), limits, if random(2) == 0 { NONE } else { limits });
        let amount = random(u64::from(limit) * 2 + 2);
        match random(4) {
            0 => {
                let found = shared.limiter.count_request(&caller).await;
                assert_eq!(found, memory.count_request(&caller).await, "step {step}");
            }
            1 => {
                // An exact estimate is not corrected.
                let used = Some(random(u64::from(limit) * 90 + 2)).filter(|used| *used != amount).unwrap_or(amount + 1);
                memory.correct_tokens(&caller, amount, used);
                shared.limiter.correct_tokens(&caller, amount, used);
                (shared.corrected)().await;
            }
            _ => {
                let found = shared.limiter.take_tokens(&caller, amount).await;
                assert_eq!(found, memory.take_tokens(&caller, amount).await, "step {step}");
            }
        }
        let pauses = [0, 1, 999, 1_000_000, 59_999_999_999, 61_000_000_001, 3_600_000_000_000];
        let pause = pauses[usize::try_from(random(7)).unwrap()];
        shared.clock.advance(Duration::from_nanos(random(pause + 1)));
    }
}

#[tokio::test]
async fn keys_consist_of_ids_and_expire() {
    let settings = settings(server());
    let limiter = connected(&settings, Fallback::Reject).await;
    let caller = subject(2, requests(60), requests(600));
    assert_eq!(limiter.count_request(&caller).await, Ok(()));
    let client = redis::Client::open(server().url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let pattern = format!("{}*", settings.key_prefix);
    let mut keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await.unwrap();
    keys.retain(|key| !key.ends_with(":check"));
    keys.sort();
    let (group, prefix) = (Uuid::from_u128(1), &settings.key_prefix);
    let expected = [
        format!("{prefix}{{{group}}}:key:{}:requests", Uuid::from_u128(2)),
        format!("{prefix}{{{group}}}:workspace:{group}:requests"),
    ];
    assert_eq!(keys, expected);
    let mut expiries = HashMap::new();
    for key in keys {
        let millis: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        expiries.insert(key, millis);
    }
    assert!(expiries.values().all(|millis| (1..=3_000).contains(millis)), "{expiries:?}");
}

#[tokio::test]
async fn script_is_loaded_again_after_it_was_flushed() {
    let server = start(&[]);
    let limiter = connected(&settings(&server), Fallback::Reject).await;
    let caller = subject(1, requests(2), NONE);
    assert_eq!(limiter.count_request(&caller).await, Ok(()));
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
    assert_eq!(limiter.count_request(&caller).await, Ok(()));
    assert_eq!(limiter.status().outages, 0);
}

#[tokio::test]
async fn wrong_credentials_are_a_start_error_without_the_password() {
    let server = start(&["--requirepass", "right-secret"]);
    let with = |password: Option<&str>, username: Option<&str>| {
        let text = |value: Option<&str>| value.map(str::to_owned);
        let credentials = Credentials { username: text(username), password: text(password) };
        ValkeySettings { credentials, ..settings(&server) }
    };
    for (password, username) in [(None, None), (Some("wrong-secret"), None), (Some("wrong-secret"), Some("someone"))] {
        let Err(error) = connect(&with(password, username), Fallback::Reject).await else { panic!("it connected") };
        let message = error.to_string();
        assert!(matches!(error, ValkeyError::Credentials { .. }), "{message}");
        assert!(message.contains("rate_limits.password names") && !message.contains("secret"), "{message}");
    }
    connected(&with(Some("right-secret"), None), Fallback::Reject).await;
    connected(&with(Some("right-secret"), Some("default")), Fallback::Reject).await;
}

/// The rules of docs/rates.md.
#[tokio::test]
async fn documented_permissions_suffice_and_fewer_are_named() {
    let server = start(&[]);
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let rules = ["on", ">s3cret", "~tollgate:rates:*", "+evalsha", "+eval", "+get", "+set", "+time", "+select"];
    for (user, rules) in [("tollgate", &rules[..]), ("reader", &rules[..6])] {
        let mut acl = redis::cmd("ACL");
        acl.arg("SETUSER").arg(user).arg(rules);
        let _: () = acl.query_async(&mut connection).await.unwrap();
    }
    let of = |user: &str, key_prefix: &str| {
        let credentials = Credentials { username: Some(user.to_owned()), password: Some("s3cret".to_owned()) };
        ValkeySettings { credentials, database: 1, key_prefix: key_prefix.to_owned(), ..settings(&server) }
    };
    let limiter = connected(&of("tollgate", "tollgate:rates:"), Fallback::Reject).await;
    assert_eq!(limiter.count_request(&subject(1, requests(1), requests(1))).await, Ok(()));
    for settings in [of("tollgate", "other:"), ValkeySettings { database: 0, ..of("reader", "tollgate:rates:") }] {
        let Err(error) = connect(&settings, Fallback::Reject).await else { panic!("it connected") };
        assert!(error.to_string().contains("tollgate:rates:"), "{error}");
    }
}

/// Returns the outage with which a limiter begins.
async fn initial_outage(settings: &ValkeySettings) -> String {
    let status = connected(settings, Fallback::Reject).await.status();
    assert_eq!(status.outages, 1);
    status.outage.unwrap()
}

#[tokio::test]
async fn missing_server_is_an_outage_that_ends_by_itself() {
    let server = start(&[]);
    let settings = settings(&server);
    server.stop();
    let message = initial_outage(&settings).await;
    assert!(message.contains(&settings.name()) && message.contains("refused"), "{message}");
    let local = connected(&settings, Fallback::Local(Arc::new(FixedRateLimiter::new(3)))).await;
    let caller = subject(1, requests(1), NONE);
    assert_eq!(local.count_request(&caller).await, Ok(()));
    assert_eq!(local.status().decided_locally, 1);
    let (cancelled, keeping) = (CancellationToken::new(), TaskTracker::new());
    keeping.spawn(local.clone().keep_connected(Arc::new(FixedClock::default()), cancelled.clone()));
    server.restart().unwrap_or_else(|error| panic!("{error:#}"));
    for _ in 0..500 {
        if local.status().outage.is_none() {
            let outcomes = [local.count_request(&caller).await.is_ok(), local.count_request(&caller).await.is_ok()];
            assert_eq!(outcomes, [true, false], "the server counts");
            return cancelled.cancel();
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("no recovery: {:?}", local.status());
}

#[tokio::test]
async fn database_is_selected_and_missing_one_is_an_outage() {
    let (first, missing) = (settings(server()), settings(server()));
    assert_eq!(connected(&ValkeySettings { database: 3, ..first }, Fallback::Reject).await.status().outage, None);
    let message = initial_outage(&ValkeySettings { database: 9_999, ..missing }).await;
    assert!(message.contains("/9999 cannot be used"), "{message}");
}

#[tokio::test]
async fn outage_is_decided_by_fallback_and_ends_by_itself() {
    let server = start(&[]);
    let caller = subject(1, requests(1), NONE);
    let settings = settings(&server);
    let local = connected(&settings, Fallback::Local(Arc::new(FixedRateLimiter::new(3)))).await;
    let strict = connected(&settings, Fallback::Reject).await;
    let (cancelled, clock) = (CancellationToken::new(), Arc::new(FixedClock::default()));
    let keeping = TaskTracker::new();
    for limiter in [&local, &strict] {
        keeping.spawn(limiter.clone().keep_connected(clock.clone(), cancelled.clone()));
    }
    assert_eq!(local.count_request(&caller).await, Ok(()));
    server.stop();
    // The local limiter counts three requests of this caller.
    let outcomes: Vec<bool> = [
        local.count_request(&caller).await,
        local.count_request(&caller).await,
        local.count_request(&caller).await,
        local.count_request(&caller).await,
    ]
    .map(|outcome| outcome.is_ok())
    .into();
    assert_eq!(outcomes, [true, true, true, false]);
    let unavailable = Err(RateLimitError::Unavailable { retry_after: RETRY_AFTER });
    assert_eq!(strict.count_request(&caller).await, unavailable);
    assert_eq!(strict.count_request(&subject(2, NONE, NONE)).await, Ok(()), "without limits nothing is counted");
    let status = local.status();
    assert!(status.outage.is_some() && status.outages == 1 && status.decided_locally == 4, "{status:?}");
    assert_eq!(strict.status().rejected, 1);
    server.restart().unwrap_or_else(|error| panic!("{error:#}"));
    for _ in 0..500 {
        if local.status().outage.is_none() && strict.status().outage.is_none() {
            let accepted = [strict.count_request(&caller).await, local.count_request(&caller).await];
            assert_eq!(accepted[0], Ok(()), "the server lost its counts");
            let rejected = accepted[1].unwrap_err().exceeded().unwrap();
            assert_eq!((rejected.scope, rejected.limit), (RateScope::Key, 1), "both use the server again");
            cancelled.cancel();
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("no recovery: {:?}", local.status());
}

/// A server that accepts connections and never answers is skipped after the first timeout.
#[tokio::test]
async fn silent_server_delays_one_request_only() {
    let server = start(&[]);
    let settings = ValkeySettings { timeout: Duration::from_millis(300), ..settings(&server) };
    let limiter = connected(&settings, Fallback::Local(Arc::new(FixedRateLimiter::new(1_000)))).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let _: () = redis::cmd("CLIENT").arg("PAUSE").arg(4_000).arg("ALL").query_async(&mut connection).await.unwrap();
    let caller = subject(1, requests(1), NONE);
    let began = tokio::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(limiter.count_request(&caller).await, Ok(()));
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(limiter.status().decided_locally, 100);
}

/// The fixtures of the provider's tests: a private authority, and its certificate for 127.0.0.1.
#[tokio::test]
async fn tls_trusts_the_configured_authority_only() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters-provider/tests/fixtures");
    // The server runs as another user, who may not be able to enter the folder of the sources.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let copied = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, std::fs::read(fixtures.join(name)).unwrap()).unwrap();
        path.display().to_string()
    };
    let (certificate, key, ca) = (copied("server.pem"), copied("server-key.pem"), copied("ca.pem"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tls_port = port.to_string();
    let options =
        ["--tls-port", &tls_port, "--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let server = start(&[&options[..], &["--tls-auth-clients", "no"]].concat());
    let encrypted = || ValkeySettings { port, is_tls: true, ..settings(&server) };
    let limiter = connected(&ValkeySettings { ca_file: Some(ca.into()), ..encrypted() }, Fallback::Reject).await;
    assert_eq!(limiter.count_request(&subject(1, requests(1), NONE)).await, Ok(()));
    let outage = initial_outage(&encrypted()).await;
    assert!(outage.contains("certificate"), "an unknown authority is trusted: {outage}");
    strict_tls_needs_client_certificate(&copied).await;
    authority_as_server_is_explained(&copied).await;
    let missing = ValkeySettings { ca_file: Some("/no/such/file".into()), ..encrypted() };
    let Err(error) = connect(&missing, Fallback::Reject).await else { panic!("it connected") };
    assert!(matches!(error, ValkeyError::CaFile { .. }), "{error}");
}

/// Checks a server that requires client certificates, with the files that `copied` makes readable for it.
async fn strict_tls_needs_client_certificate(copied: &impl Fn(&str) -> String) {
    let (certificate, key, ca) = (copied("server.pem"), copied("server-key.pem"), copied("ca.pem"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tls_port = port.to_string();
    let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let server = start(&[&["--tls-port", &tls_port, "--tls-auth-clients", "yes"], &files[..]].concat());
    let anonymous = ValkeySettings { port, is_tls: true, ca_file: Some(ca.into()), ..settings(&server) };
    initial_outage(&anonymous).await;
    let with = |key: &str| ValkeySettings {
        client_identity: Some((copied("client.pem").into(), copied(key).into())),
        ..anonymous.clone()
    };
    let limiter = connected(&with("client-key.pem"), Fallback::Reject).await;
    assert_eq!(limiter.count_request(&subject(1, requests(1), NONE)).await, Ok(()));
    for wrong in ["server-key.pem", "client.pem"] {
        let error = ValkeyRateLimiter::check(&with(wrong)).unwrap_err();
        assert!(error.to_string().contains("rate_limits.client_key_file cannot be used"), "{error}");
    }
}

/// Checks a server with a certificate as `openssl req -x509` makes it without options.
async fn authority_as_server_is_explained(copied: &impl Fn(&str) -> String) {
    let (certificate, key) = (copied("authority.pem"), copied("authority-key.pem"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tls_port = port.to_string();
    let server = start(&[
        "--tls-port",
        &tls_port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let settings = ValkeySettings { port, is_tls: true, ca_file: Some(certificate.into()), ..settings(&server) };
    let outage = initial_outage(&settings).await;
    assert!(outage.contains("is an authority (CA:TRUE): create one"), "{outage}");
}
