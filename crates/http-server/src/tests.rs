use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::dev::fn_service;
use bytes::Bytes;
use futures_util::StreamExt;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::registry::ConnectionCounts;
use crate::settings::Preemption;

const BIG: usize = 8 << 20;

/// The client side of a connection, and the requests that reached the server.
struct Peer {
    stream: DuplexStream,
    /// The paths of the requests that reached the handler, and the bodies that it read.
    served: Rc<RefCell<Vec<String>>>,
    connections: Connections,
    server: JoinHandle<()>,
}

async fn handle(mut request: Request, served: Rc<RefCell<Vec<String>>>) -> Result<Response<BoxBody>, actix_web::Error> {
    let path = request.path().to_owned();
    served.borrow_mut().push(path.clone());
    let mut body = request.take_payload();
    let response = match path.as_str() {
        "/echo" => {
            let mut whole = Vec::new();
            while let Some(piece) = body.next().await {
                match piece {
                    Ok(piece) => whole.extend_from_slice(&piece),
                    Err(error) => {
                        served.borrow_mut().push("unreadable".to_owned());
                        return Ok(HttpResponse::BadRequest().body(error.to_string()).into());
                    }
                }
            }
            served.borrow_mut().push(format!("{} bytes", whole.len()));
            HttpResponse::Ok().body(whole)
        }
        "/big" => HttpResponse::Ok().body(vec![b'x'; BIG]),
        "/hang" => pending().await,
        "/later" => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            HttpResponse::Ok().body("later")
        }
        "/stream" => {
            let pieces = (0..3).map(|_| Ok::<_, actix_web::Error>(Bytes::from(vec![b'y'; 40_000])));
            HttpResponse::Ok().streaming(futures_util::stream::iter(pieces))
        }
        _ => HttpResponse::Ok().body("ok"),
    };
    Ok(response.into())
}

fn start(settings: ConnectionSettings) -> Peer {
    // Smaller than the response of `/big`, so that the server must wait for the client.
    let (stream, io) = tokio::io::duplex(64 * 1024);
    let served = Rc::new(RefCell::new(Vec::new()));
    let connections = Connections::new(8, Preemption::Idle);
    let noted = Rc::clone(&served);
    let reject: RejectHead = Arc::new(|fault, _| HttpResponse::build(fault.status()).body(fault.to_string()));
    let context = Context {
        app: fn_service::<_, _, _, _, _, ()>(move |request| handle(request, Rc::clone(&noted))),
        http: ServiceConfig::default(),
        settings,
        connections: connections.clone(),
        reject,
    };
    let task = spawn_local(serve(io, Rc::new(context)));
    Peer { stream, served, connections, server: task }
}

impl Peer {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends bytes; returns false once the server has closed.
    async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Reads until the received bytes end with `end`.
    async fn read_until(&mut self, end: &str) -> String {
        let mut said = Vec::new();
        while !said.ends_with(end.as_bytes()) {
            said.push(self.stream.read_u8().await.unwrap());
        }
        String::from_utf8(said).unwrap()
    }

    /// Reads until the server closes.
    async fn read_to_end(&mut self) -> String {
        let mut said = Vec::new();
        self.stream.read_to_end(&mut said).await.unwrap();
        String::from_utf8_lossy(&said).into_owned()
    }

    fn served(&self) -> Vec<String> {
        self.served.borrow().clone()
    }
}

async fn run<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}

fn get(path: &str) -> String {
    request("GET", path, "", "")
}

fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n{body}")
}

/// Returns the status and the body of each response. The responses at the indexes in `bodiless` answer HEAD and have no
/// body.
fn answers(mut said: &str, bodiless: &[usize]) -> Vec<(String, String)> {
    let mut answers = Vec::new();
    while let Some((head, rest)) = said.split_once("\r\n\r\n") {
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let length = if bodiless.contains(&answers.len()) { 0 } else { length.parse().unwrap() };
        answers.push((head.split(' ').nth(1).unwrap().to_owned(), rest[..length].to_owned()));
        said = &rest[length..];
    }
    assert_eq!(said, "", "bytes behind the last answer");
    answers
}

fn statuses(said: &str) -> Vec<String> {
    answers(said, &[]).into_iter().map(|(status, _)| status).collect()
}

#[tokio::test(start_paused = true)]
async fn pipelined_head_request_keeps_responses_in_order() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        let head = request("HEAD", "/a", "", "");
        let echo = request("POST", "/echo", "content-length: 5\r\n", "hello");
        peer.send([get("/a"), head.clone(), get("/later"), echo, head, get("/b")].concat()).await;
        peer.send(request("GET", "/c", "connection: close\r\n", "")).await;
        let said = peer.read_to_end().await;
        let bodies: Vec<String> = answers(&said, &[1, 4]).into_iter().map(|(_, body)| body).collect();
        assert_eq!(bodies, ["ok", "", "later", "hello", "", "ok", "ok"]);
        assert_eq!(peer.served(), ["/a", "/a", "/later", "/echo", "5 bytes", "/a", "/b", "/c"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn requests_after_a_closing_one_are_ignored() {
    run(async {
        for closing in [
            request("GET", "/last", "connection: close\r\n", ""),
            request("GET", "/last", "connection: keep-alive, close\r\n", ""),
            "GET /last HTTP/1.0\r\n\r\n".to_owned(),
            request("GET", "/last", "connection: upgrade\r\nupgrade: h2c\r\n", ""),
            request("GET", "/last", "connection: upgrade\r\nupgrade: websocket\r\n", ""),
            "CONNECT /last HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        ] {
            let mut peer = start(ConnectionSettings::default());
            peer.send([get("/first"), closing.clone(), get("/behind")].concat()).await;
            assert_eq!(statuses(&peer.read_to_end().await), ["200", "200"], "{closing}");
            assert_eq!(peer.served(), ["/first", "/last"], "{closing}");
            peer.server.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn http_1_0_with_keep_alive_stays_open() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send("GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n").await;
        assert_eq!(statuses(&peer.read_to_end().await), ["200", "200"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn heads_and_idle_connections_time_out() {
    run(async {
        let began = Instant::now();
        let mut silent = start(ConnectionSettings::default());
        assert_eq!(silent.read_to_end().await, "");
        assert_eq!(began.elapsed().as_secs(), 10);

        let mut peer = start(ConnectionSettings::default());
        peer.send(get("/a")).await;
        peer.read_until("ok").await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        peer.send("GET /b HTTP/1.1\r\nho").await;
        let began = Instant::now();
        for _ in 0..9 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            peer.send("s").await;
        }
        let said = peer.read_to_end().await;
        assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("connection: close"), "{said}");
        assert!(said.contains("The request head did not arrive within 10000 ms"), "{said}");
        // The bytes of the head do not extend the timeout; the connection lingers for two more seconds.
        assert_eq!(began.elapsed().as_secs(), 10);
        peer.server.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 12);
        assert_eq!(peer.served.borrow().len(), 1);

        let mut idle = start(ConnectionSettings::default());
        idle.send(get("/a")).await;
        idle.read_until("ok").await;
        let began = Instant::now();
        assert_eq!(idle.read_to_end().await, "");
        assert_eq!(began.elapsed().as_secs(), 75);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unread_bodies_close_the_connection_in_bounded_time() {
    run(async {
        let framings = [
            ("transfer-encoding: chunked\r\n", "0"),
            ("transfer-encoding: chunked\r\n", " "),
            ("transfer-encoding: chunked\r\n", "5;ext=aaaaaaa"),
            ("transfer-encoding: chunked\r\n", "0\r\nx-trailer: aaa"),
            ("transfer-encoding: chunked\r\n", "1\r\na\r\n"),
            ("content-length: 100000000\r\n", "a"),
            ("content-length: 1\r\nexpect: 100-continue\r\n", ""),
            ("transfer-encoding: chunked\r\nconnection: close\r\n", "0"),
        ];
        for (headers, body) in framings {
            for repeated in [false, true] {
                let mut peer = start(ConnectionSettings { linger_bytes: 64 * 1024, ..ConnectionSettings::default() });
                peer.send(request("POST", "/unread", headers, body)).await;
                let began = Instant::now();
                peer.read_until("ok").await;
                let mut sent = 0;
                while repeated && !body.is_empty() && peer.try_send(body.repeat(1000)).await {
                    sent += 1000 * body.len();
                }
                assert!(sent < 600_000, "{headers}{body}: {sent} bytes were taken");
                peer.server.await.unwrap();
                assert!(began.elapsed() <= Duration::from_secs(2), "{headers}{body}: {:?}", began.elapsed());
            }
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn response_arrives_when_client_first_writes_long_unread_body() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send(request("POST", "/unread", "content-length: 9437184\r\n", "")).await;
        for _ in 0..9 {
            // A pause that outlasts the write of the response.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(peer.try_send("a".repeat(1024 * 1024)).await, "the connection was closed before the body's end");
        }
        assert_eq!(answers(&peer.read_to_end().await, &[])[0].0, "200");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn received_unread_body_keeps_connection_open() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send(request("POST", "/unread", "content-length: 5\r\n", "hello")).await;
        peer.read_until("ok").await;
        peer.send(request("POST", "/unread", "transfer-encoding: chunked\r\n", "2\r\nab\r\n0\r\n\r\n")).await;
        peer.read_until("ok").await;
        peer.send(request("POST", "/echo", "content-length: 3\r\nconnection: close\r\n", "abc")).await;
        assert_eq!(answers(&peer.read_to_end().await, &[]), [("200".to_owned(), "abc".to_owned())]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn continue_is_sent_only_when_handler_reads_body() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        let expecting = "content-length: 5\r\nexpect: 100-continue\r\n";
        peer.send(request("POST", "/echo", expecting, "")).await;
        assert_eq!(peer.read_until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        peer.send("hello").await;
        assert!(peer.read_until("hello").await.starts_with("HTTP/1.1 200 "));
        // A client that did not wait gets no `100 Continue`.
        peer.send(request("POST", "/echo", expecting, "hello")).await;
        assert!(peer.read_until("hello").await.starts_with("HTTP/1.1 200 "));
        peer.send(request("POST", "/rejected", expecting, "")).await;
        let said = peer.read_to_end().await;
        assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("connection: close"), "{said}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn connection_closes_after_write_timeout_when_client_reads_nothing() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send([get("/big"), get("/behind")].concat()).await;
        let began = Instant::now();
        peer.server.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 30);
        assert_eq!(*peer.served.borrow(), ["/big"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn slow_client_receives_whole_response() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send(request("GET", "/big", "connection: close\r\n", "")).await;
        let (mut piece, mut total) = (vec![0; 100_000], 0);
        loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            match peer.stream.read(&mut piece).await.unwrap() {
                0 => break,
                read => total += read,
            }
        }
        assert!(total > BIG && total < BIG + 1000, "{total}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn streamed_response_is_sent_in_chunks() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send(request("GET", "/stream", "connection: close\r\n", "")).await;
        let said = peer.read_to_end().await;
        assert!(said.contains("transfer-encoding: chunked") && said.ends_with("\r\n0\r\n\r\n"));
        let (_, body) = said.split_once("\r\n\r\n").unwrap();
        assert_eq!(body.matches('y').count(), 120_000);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn malformed_heads_are_answered_and_closed() {
    run(async {
        let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {}\r\n\r\n", "a".repeat(140_000));
        let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(200));
        let framing = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n";
        for (bytes, status) in [
            ("\x16\x03\x01\x02\0\x01\0\x01".to_owned(), 400),
            ("GET / HTTP/2.0\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("\r\n".repeat(100), 400),
            (format!("{framing}content-length: 1\r\n\r\na"), 400),
            (format!("{framing}transfer-encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
            ("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400),
            (long, 431),
            (many, 431),
        ] {
            let mut peer = start(ConnectionSettings::default());
            peer.send(get("/before")).await;
            peer.try_send(&bytes).await;
            peer.try_send(get("/behind")).await;
            let said = peer.read_to_end().await;
            let answers = answers(&said, &[]);
            let shown = &bytes[..bytes.len().min(60)];
            assert_eq!(answers.len(), 2, "{shown}: {said}");
            assert_eq!(answers[1].0, status.to_string(), "{shown}: {said}");
            assert!(answers[1].1.starts_with("The request head is "), "{shown}: {said}");
            assert!(said.contains("connection: close"), "{said}");
            assert_eq!(peer.served(), ["/before"], "{shown}");
            peer.server.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn http_2_client_receives_http_1_1_required() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let said = peer.read_to_end().await;
        assert_eq!(said.as_bytes(), HTTP_1_1_REQUIRED);
        // A frame header: length, type, flags, stream.
        assert_eq!(said.as_bytes()[..9], [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(said.as_bytes()[9..18], [0, 0, 8, 7, 0, 0, 0, 0, 0]);
        assert_eq!(said.as_bytes()[18..], [0, 0, 0, 0, 0, 0, 0, 0xd]);
        peer.server.await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn excessive_chunk_framing_is_rejected() {
    run(async {
        let endless = [
            format!("2{}", " ".repeat(20_000)),
            "0".repeat(20_000),
            format!("2;a={}", "a".repeat(20_000)),
            format!("2\r\nab\r\n0\r\nx: {}", "a".repeat(20_000)),
            "zz\r\n".to_owned(),
        ];
        for body in endless {
            let mut peer = start(ConnectionSettings::default());
            peer.send(request("POST", "/echo", "transfer-encoding: chunked\r\n", &body)).await;
            let said = peer.read_to_end().await;
            assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("connection: close"), "{said}");
            assert_eq!(peer.served(), ["/echo", "unreadable"]);
        }
        // The smallest chunks are accepted.
        let mut peer = start(ConnectionSettings::default());
        let body = format!("{}0\r\n\r\n", "1\r\na\r\n".repeat(9_000));
        peer.send(request("POST", "/echo", "transfer-encoding: chunked\r\nconnection: close\r\n", &body)).await;
        assert!(peer.read_to_end().await.starts_with("HTTP/1.1 200 "));
        assert_eq!(peer.served(), ["/echo", "9000 bytes"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn client_disconnect_ends_request_and_connection() {
    run(async {
        let hanging = start(ConnectionSettings::default());
        let Peer { mut stream, server, connections, .. } = hanging;
        stream.write_all(get("/hang").as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(connections.counts(), ConnectionCounts { in_request: 1, ..ConnectionCounts::default() });
        drop(stream);
        server.await.unwrap();
        assert_eq!(connections.counts().open(), 0);

        // A response that is ready at once is sent although the client has closed its side.
        let mut peer = start(ConnectionSettings::default());
        peer.send([get("/a"), request("POST", "/echo", "content-length: 9\r\n", "cut")].concat()).await;
        peer.stream.shutdown().await.unwrap();
        assert_eq!(statuses(&peer.read_to_end().await), ["200", "400"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn drain_closes_connections_after_response_and_idle_ones_on_close_idle() {
    run(async {
        let mut peer = start(ConnectionSettings::default());
        peer.send(get("/a")).await;
        peer.read_until("ok").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(peer.connections.counts(), ConnectionCounts { idle: 1, ..ConnectionCounts::default() });
        peer.connections.begin_drain();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(peer.connections.counts().open(), 1, "an idle connection stays open");
        peer.send(get("/b")).await;
        let said = peer.read_to_end().await;
        assert!(said.contains("connection: close") && said.ends_with("ok"), "{said}");
        drop(peer.stream);
        peer.connections.closed().await;

        let mut idle = start(ConnectionSettings::default());
        idle.send(get("/a")).await;
        idle.read_until("ok").await;
        idle.connections.close_idle();
        assert_eq!(idle.read_to_end().await, "");

        let mut begun = start(ConnectionSettings::default());
        begun.send("G").await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(begun.connections.counts().reading_head, 1);
        begun.connections.close_idle();
        tokio::time::sleep(Duration::from_secs(1)).await;
        begun.send("ET /late HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert_eq!(statuses(&begun.read_to_end().await), ["200"]);
        assert_eq!(begun.served(), ["/late"]);

        // A request in the socket buffer is served when idle connections are closed.
        let mut sent = start(ConnectionSettings::default());
        tokio::time::sleep(Duration::from_millis(1)).await;
        sent.connections.close_idle();
        sent.send(get("/sent")).await;
        assert_eq!(statuses(&sent.read_to_end().await), ["200"]);
    })
    .await;
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        Just(get("/a")),
        Just(request("HEAD", "/a", "", "")),
        Just(format!("\r\n\n{}", get("/later"))),
        "[a-z\r\n]{0,40}".prop_map(|body| request(
            "POST",
            "/echo",
            &format!("content-length: {}\r\n", body.len()),
            &body
        )),
        "[a-z\r\n]{0,40}".prop_map(|body| request(
            "POST",
            "/unread",
            &format!("content-length: {}\r\n", body.len()),
            &body
        )),
        ("[a-z\r\n]{1,20}", "[a-z]{0,9}", "[a-z]{0,9}").prop_map(|(body, extension, trailer)| {
            let body = format!("{:x};e={extension}\r\n{body}\r\n0\r\nx-t: {trailer}\r\n\r\n", body.len());
            request("POST", "/echo", "transfer-encoding: chunked\r\n", &body)
        }),
        Just(request("GET", "/last", "connection: close\r\n", "")),
        Just("GET / HTTP/9\r\n\r\n".to_owned()),
    ];
    prop::collection::vec(one, 1..6).prop_map(|requests| requests.concat().into_bytes())
}

/// Returns the requests that reach the handler when the bytes arrive in these pieces.
fn served_in_pieces(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut peer = start(ConnectionSettings::default());
        let mut from = 0;
        for to in cuts.iter().copied().chain([bytes.len()]) {
            if !peer.try_send(&bytes[from..to]).await {
                break;
            }
            from = to;
            // Longer than any handler takes, shorter than any timer.
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
        tokio::time::sleep(Duration::from_secs(9)).await;
        peer.served()
    })
}

/// A quarter of the configured cases: each one serves several requests.
fn property_cases() -> u32 {
    ProptestConfig::default().cases / 4
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(property_cases()))]

    #[test]
    fn requests_are_the_same_however_their_bytes_are_split(
        bytes in requests(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        // An unread body in pieces ends the connection, which this test does not compare.
        prop_assume!(!bytes.windows(7).any(|window| window == b"/unread"));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(served_in_pieces(&bytes, &cuts), served_in_pieces(&bytes, &[]));
    }
}
