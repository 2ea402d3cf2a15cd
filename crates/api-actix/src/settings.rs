//! The settings of the HTTP server.

use std::net::SocketAddr;
use std::time::Duration;

use domain::decision::DraftBounds;
use http_server::ConnectionSettings;
use ipnet::IpNet;

use crate::http::admission_bound::AdmissionSettings;
use crate::http::wire_names::WireNames;

/// The settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The address to listen on; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The prefix of every API path, such as `/api/v1`; may be empty.
    pub base_path: String,
    /// The literal names in responses.
    pub wire_names: WireNames,
    /// The maximum size of a JSON body, in bytes.
    pub max_json_bytes: usize,
    /// The bounds on the content of a Decisions request.
    pub draft_bounds: DraftBounds,
    /// The bounds on in-flight operations and on the memory of their bodies.
    pub admission: AdmissionSettings,
    /// The deadlines and bounds of each connection.
    pub connection: ConnectionSettings,
    /// The longest time in which a client may send a request body.
    pub body_timeout: Duration,
    /// The longest duration of a Decisions request, from the end of its body to its response.
    pub request_timeout: Duration,
    /// The maximum number of connections for each worker. At the limit, idle connections are closed for new ones.
    pub max_connections: usize,
    /// The networks whose `X-Forwarded-For` determines the client address in logs and records.
    pub trusted_proxies: Vec<IpNet>,
    /// True: usage records contain the client address.
    pub record_client_address: bool,
    /// The number of worker threads; `None` means one per core.
    pub workers: Option<usize>,
    /// The time during which responses carry `Connection: close` before a stop closes the listener.
    pub drain_period: Duration,
    /// The longest wait of a stop for in-flight requests after that.
    pub shutdown_timeout: Duration,
}
