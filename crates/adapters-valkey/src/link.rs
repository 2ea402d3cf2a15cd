//! The connection to the server, with a short circuit while it fails.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::system::Clock;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, TlsCertificates,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::error::Counters;
use crate::script::{Invocation, RateScript};
use crate::{ValkeyError, ValkeySettings};

/// The time for a reply that no request waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The connection that all requests share. Its first failure opens a short circuit: later calls fail at once, until
/// [`Self::reconnect`] succeeds.
pub(crate) struct Link {
    connector: Connector,
    script: RateScript,
    timeout: Duration,
    state: Mutex<LinkState>,
    failed: Notify,
}

struct LinkState {
    connection: Result<MultiplexedConnection, String>,
    /// Distinguishes connections, so that a late failure of an old one leaves the new one alone.
    generation: u64,
}

/// The server is not used now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable;

impl Link {
    /// Connects, and runs the script once. A server that cannot be reached is an outage, which [`Self::reconnect`] ends.
    ///
    /// # Errors
    /// The settings cannot be used, or the server rejects the credentials or the script.
    pub(crate) async fn start(settings: &ValkeySettings, script: RateScript) -> Result<Self, ValkeyError> {
        let connector = Connector::new(settings)?;
        // The first answer of a cold server may be slower than a request may wait.
        let patience = settings.timeout.max(PATIENCE);
        let connection = match open(&connector, &script, &settings.key_prefix, patience).await {
            Err(error) if error.is_outage() => Err(error.to_string()),
            opened => Ok(opened?),
        };
        let state = Mutex::new(LinkState { connection, generation: 0 });
        Ok(Self { connector, script, timeout: settings.timeout, state, failed: Notify::new() })
    }

    /// Returns the name of the server for messages.
    pub(crate) fn server(&self) -> &str {
        self.connector.server()
    }

    /// Returns the last error while the server is not used.
    pub(crate) fn outage(&self) -> Option<String> {
        self.lock().connection.as_ref().err().cloned()
    }

    /// Runs the script within the timeout of a request.
    pub(crate) async fn run(&self, invocation: &Invocation, counters: &Counters) -> Result<Vec<i64>, Unavailable> {
        self.run_within(self.timeout, invocation, counters).await
    }

    /// Checks an idle link, with patience: only requests measure whether the server is too slow for them.
    pub(crate) async fn check(&self, key_prefix: &str, counters: &Counters) {
        let within = self.timeout.max(PATIENCE);
        // A failure is recorded.
        let _ = self.run_within(within, &check(key_prefix), counters).await;
    }

    async fn run_within(
        &self,
        within: Duration,
        invocation: &Invocation,
        counters: &Counters,
    ) -> Result<Vec<i64>, Unavailable> {
        let (mut connection, generation) = {
            let state = self.lock();
            (state.connection.clone().map_err(|_| Unavailable)?, state.generation)
        };
        let error = match timeout(within, self.script.run(&mut connection, invocation)).await {
            Ok(Ok(reply)) => return Ok(reply),
            Ok(Err(error)) => ValkeyError::new(self.server(), &error),
            Err(_) => ValkeyError::unusable(self.server(), no_reply(within)),
        };
        self.fail(generation, &error, counters);
        Err(Unavailable)
    }

    /// Waits for the next failure.
    pub(crate) async fn wait_for_failure(&self) {
        self.failed.notified().await;
    }

    /// Replaces the connection by a new one that answers within the timeout.
    pub(crate) async fn reconnect(&self, key_prefix: &str) -> Result<(), ValkeyError> {
        let opened = open(&self.connector, &self.script, key_prefix, self.timeout).await;
        let mut state = self.lock();
        match opened {
            Ok(connection) => {
                *state = LinkState { connection: Ok(connection), generation: state.generation.wrapping_add(1) };
                Ok(())
            }
            Err(error) => {
                state.connection = Err(error.to_string());
                Err(error)
            }
        }
    }

    /// Opens the short circuit, unless the connection was replaced.
    fn fail(&self, generation: u64, error: &ValkeyError, counters: &Counters) {
        let mut state = self.lock();
        if state.generation != generation || state.connection.is_err() {
            return;
        }
        state.connection = Err(error.to_string());
        counters.outages.add_one();
        self.failed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        // No code under the lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection, and checks by one write that the script runs.
async fn open(
    connector: &Connector,
    script: &RateScript,
    key_prefix: &str,
    within: Duration,
) -> Result<MultiplexedConnection, ValkeyError> {
    let mut connection = connector.connect().await?;
    match timeout(within, script.run(&mut connection, &check(key_prefix))).await {
        Ok(Ok(_)) => Ok(connection),
        Ok(Err(error)) => Err(ValkeyError::new(connector.server(), &error)),
        Err(_) => Err(ValkeyError::unusable(connector.server(), no_reply(within))),
    }
}

/// Returns an invocation that writes a key of a second, to see that the server accepts writes.
fn check(key_prefix: &str) -> Invocation {
    let arguments = ["take", "1", "1", "4294967295"].map(str::to_owned).to_vec();
    Invocation { keys: vec![format!("{key_prefix}check")], arguments }
}

fn no_reply(within: Duration) -> String {
    format!("no reply within {} ms", within.as_millis())
}

/// The intervals of the task that keeps the link.
const CHECK_EVERY: Duration = Duration::from_secs(1);
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);
/// The uptime after which the delay begins anew: a server that fails at once after each connection is tried rarely.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// The delay before the next connection, which doubles while connections fail soon.
pub(crate) struct Backoff {
    clock: Arc<dyn Clock>,
    next: Duration,
    connected_at: Duration,
}

impl Backoff {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let connected_at = clock.monotonic();
        Self { clock, next: FIRST_DELAY, connected_at }
    }

    /// Returns the delay after a connection has failed.
    pub(crate) fn after_failure(&mut self) -> Duration {
        if self.clock.monotonic().saturating_sub(self.connected_at) >= STABLE_AFTER {
            self.next = FIRST_DELAY;
        }
        self.next_delay()
    }

    /// Returns the delay after an attempt to connect has failed.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST_DELAY);
        delay
    }

    /// Records a new connection.
    pub(crate) fn connected(&mut self) {
        self.connected_at = self.clock.monotonic();
    }
}

/// Returns after the interval between two checks of an idle link.
pub(crate) async fn check_interval() {
    sleep(CHECK_EVERY).await;
}

/// The maximum time to connect, to log in and to select the database.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Requests that wait to be written; more wait for a place.
const WRITE_QUEUE: usize = 1_024;

/// Opens connections to one server.
pub(crate) struct Connector {
    client: Client,
    server: String,
}

impl Connector {
    /// Reads the files of certificates. Connects to nothing.
    pub(crate) fn new(settings: &ValkeySettings) -> Result<Self, ValkeyError> {
        let server = settings.name();
        let client = client(settings).map_err(|error| match error {
            ClientError::Certificates(error) => error,
            ClientError::Redis(error) if settings.is_tls => ValkeyError::Tls(error.to_string()),
            ClientError::Redis(error) => ValkeyError::new(&server, &error),
        })?;
        Ok(Self { client, server })
    }

    /// Returns the name of the server for messages.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Opens a connection that requests share.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, ValkeyError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // Each call has a deadline of its own.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WRITE_QUEUE);
        let opening = self.client.get_multiplexed_async_connection_with_config(&config);
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, opening).await.map_err(|_| {
            let reason = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
            ValkeyError::unusable(&self.server, reason)
        })?;
        opened.map_err(|error| ValkeyError::new(&self.server, &error))
    }
}

enum ClientError {
    Certificates(ValkeyError),
    Redis(RedisError),
}

impl From<RedisError> for ClientError {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

fn client(settings: &ValkeySettings) -> Result<Client, ClientError> {
    let mut login = RedisConnectionInfo::default().set_db(settings.database).set_skip_set_lib_name();
    if let Some(username) = &settings.credentials.username {
        login = login.set_username(username);
    }
    if let Some(password) = &settings.credentials.password {
        login = login.set_password(password);
    }
    let information = (settings.host.clone(), settings.port)
        .into_connection_info()?
        .set_redis_settings(login)
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    if !settings.is_tls {
        return Ok(Client::open(information)?);
    }
    let address =
        ConnectionAddr::TcpTls { host: settings.host.clone(), port: settings.port, insecure: false, tls_params: None };
    let root_cert = match &settings.ca_file {
        Some(path) => Some(authorities(path).map_err(ClientError::Certificates)?),
        None => None,
    };
    let client_tls = match &settings.client_identity {
        Some((certificate, key)) => Some(client_identity(certificate, key).map_err(ClientError::Certificates)?),
        None => None,
    };
    Ok(Client::build_with_tls(information.set_addr(address), TlsCertificates { client_tls, root_cert })?)
}

/// Reads a client certificate and its key, and checks that they belong together.
fn client_identity(certificate: &Path, key: &Path) -> Result<ClientTlsConfig, ValkeyError> {
    let unusable = |reason: &str| ValkeyError::ClientIdentity(reason.to_owned());
    let read = |path: &Path| std::fs::read(path).map_err(|error| unusable(&error.to_string()));
    let (client_cert, client_key) = (read(certificate)?, read(key)?);
    // The errors of the PEM reader may repeat a line, so they are left out.
    let chain = CertificateDer::pem_slice_iter(&client_cert).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| unusable("the certificate is not in PEM"))?;
    let private_key = PrivateKeyDer::from_pem_slice(&client_key);
    let private_key = private_key.map_err(|_| unusable("the key is not an unencrypted private key in PEM"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let checked = CertifiedKey::from_der(chain, private_key, &provider);
    checked.map_err(|error| unusable(&error.to_string()))?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

/// Returns the usable certificate authorities of the platform and of a file in PEM. A certificate of the platform that
/// rustls cannot use would make the client reject all of them.
fn authorities(path: &Path) -> Result<Vec<u8>, ValkeyError> {
    let unreadable = |reason: String| ValkeyError::CaFile { path: path.to_owned(), reason };
    let mut pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
        return Err(unreadable("it contains no certificate in PEM".to_owned()));
    }
    for certificate in rustls_native_certs::load_native_certs().certs {
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            let text = STANDARD.encode(&certificate);
            pem.extend_from_slice(
                format!("\n-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n").as_bytes(),
            );
        }
    }
    Ok(pem)
}

#[cfg(test)]
mod tests {
    use domain::testing::FixedClock;

    use super::*;

    #[test]
    fn delay_doubles_until_a_connection_was_stable() {
        let clock = FixedClock::default();
        let mut backoff = Backoff::new(Arc::new(clock.clone()));
        let delays: Vec<u128> = (0..8).map(|_| backoff.next_delay().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.connected();
        clock.advance(STABLE_AFTER.saturating_sub(Duration::from_millis(1)));
        assert_eq!(backoff.after_failure(), LONGEST_DELAY, "it failed soon");
        clock.advance(Duration::from_millis(1));
        assert_eq!(backoff.after_failure(), FIRST_DELAY);
    }
}
