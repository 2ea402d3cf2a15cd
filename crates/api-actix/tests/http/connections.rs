//! Connections of hostile clients.

use std::net::SocketAddr;
use std::time::Duration;

use http_server::ConnectionSettings;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::exchange;
use super::gateway::{Caller, Setup};

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

fn request(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")
}

/// Sends bytes, then others repeatedly until the server closes, and reads nothing.
async fn attack(address: SocketAddr, bytes: String, repeated: &'static str) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let _ = stream.write_all(bytes.as_bytes()).await;
    while !repeated.is_empty() && stream.write_all(repeated.as_bytes()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn new_clients_are_served_despite_hostile_connections() {
    // Four connections, and short deadlines.
    let mut setup = Setup::new().await;
    setup.settings.max_connections = 4;
    setup.settings.body_timeout = Duration::from_millis(500);
    setup.settings.connection = ConnectionSettings {
        header_timeout: Duration::from_millis(500),
        write_timeout: Duration::from_secs(1),
        linger_timeout: Duration::from_millis(200),
        ..ConnectionSettings::default()
    };
    let gateway = setup.start();
    let address = gateway.address;
    let key = format!("authorization: {}\r\ncontent-type: application/json\r\n{CHUNKED}", Caller::Inference.bearer());
    let decisions = "/api/alpha/decisions";
    let unauthorised = request("POST", decisions, CHUNKED);
    let with_key = request("POST", decisions, &key);
    let attacks = [
        ("nothing at all", String::new(), ""),
        ("half a head", "GET /health/li".to_owned(), ""),
        ("a head without an end", "GET /health/live HTTP/1.1\r\nx: ".to_owned(), "a"),
        ("half a second head", request("GET", "/health/live", "") + "GET /hea", ""),
        ("an idle connection", request("GET", "/health/live", ""), ""),
        ("no body after 401", unauthorised.clone(), ""),
        ("no body after 404", request("POST", "/nothing", CHUNKED), ""),
        ("no body after 200", request("GET", "/health/live", CHUNKED), ""),
        ("no body after Connection: close", request("POST", decisions, &format!("connection: close\r\n{CHUNKED}")), ""),
        ("no body with a key", with_key.clone(), ""),
        ("a body that stops", with_key.clone() + "1\r\n{\r\n", ""),
        ("blanks without end", with_key.clone() + "1\r\n{\r\n1", " "),
        ("chunk extensions without end", unauthorised.clone() + "1;x=", "a"),
        ("zeros without end", unauthorised.clone(), "0"),
        ("trailers without end", unauthorised.clone() + "0\r\nx: ", "a"),
        ("chunks without end", unauthorised, "1\r\na\r\n"),
        ("unread responses", request("GET", "/openapi.json", "").repeat(100), ""),
        ("a length that is not sent", request("POST", "/nothing", "content-length: 1000000\r\n"), "a"),
    ];
    for (name, bytes, repeated) in attacks {
        let mut attackers = JoinSet::new();
        for _ in 0..8 {
            attackers.spawn(attack(address, bytes.clone(), repeated));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let answer = tokio::time::timeout(Duration::from_secs(20), gateway.send("GET", "/health/live", &[], b"")).await;
        let answer = answer.unwrap_or_else(|_| panic!("a new client is not served beside {name}"));
        assert_eq!(answer.status, 200, "{name}");
    }
}

#[tokio::test]
async fn malformed_heads_are_answered_with_the_envelope() {
    let mut setup = Setup::new().await;
    setup.settings.connection =
        ConnectionSettings { header_timeout: Duration::from_millis(300), ..ConnectionSettings::default() };
    let gateway = setup.start();
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "a".repeat(140_000));
    for (head, status) in [("GET / HTTP/2.0\r\n\r\n", 400), (&long, 431), ("GET / HTTP/1.1\r\nx: ", 408)] {
        let reply = exchange(gateway.address, head.as_bytes()).await;
        reply.expect_error(status);
    }
}
