//! Requests that a connection lost: which of them are repeated, how often, and how many of their bytes count.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::routing::AttemptFailureKind;
use http_client::{Http2, HttpClientSettings, ProxySettings};
use rstest::rstest;
use support::{AMPLE, ANSWER, Upstream, closed, decide, ok, provider, provider_with, read_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The response of a provider to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    Answer,
    Close,
    Reset,
    /// Sends the beginning of an answer and closes.
    Begin,
}
use Reaction::{Answer, Begin, Close, Reset};

/// Reacts to the requests of all connections in this order, and to further ones like to the last. Returns the number of
/// requests so far.
async fn reacting(reactions: &'static [Reaction]) -> (Upstream, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let upstream = Upstream::start(move |mut socket| {
        let counted = Arc::clone(&counted);
        async move {
            while read_request(&mut socket).await.is_some() {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                match reactions[number.min(reactions.len() - 1)] {
                    Answer => socket.write_all(ok(ANSWER).as_bytes()).await.unwrap(),
                    Close => return,
                    Reset => return socket.set_zero_linger().unwrap(),
                    Begin => return socket.write_all(b"HTTP/1.1 2").await.unwrap(),
                }
            }
        }
    })
    .await;
    (upstream, requests)
}

/// The first call of each case is answered and its connection kept; the second one is lost.
#[rstest]
#[case::closed(&[Answer, Close, Answer], true, 3, 2)]
#[case::reset(&[Answer, Reset, Answer], true, 3, 2)]
#[case::a_byte_arrived(&[Answer, Begin, Answer], false, 2, 1)]
#[case::never_two_repeats(&[Answer, Close, Close, Answer], false, 3, 2)]
#[tokio::test]
async fn request_on_kept_connection_is_repeated_once_without_a_byte_of_an_answer(
    #[case] reactions: &'static [Reaction],
    #[case] is_answered: bool,
    #[case] requests: usize,
    #[case] connections: usize,
) {
    let (upstream, counted) = reacting(reactions).await;
    let provider = provider(&upstream);
    let sent_once = decide(&provider).await.unwrap().sent_bytes;
    let call = support::call();
    let sent = call.sent.clone();
    let counted_bytes = match provider.decide(call).await {
        Ok(answer) => {
            assert!(is_answered);
            assert_eq!(answer.usage.unwrap().input_tokens, 3);
            answer.sent_bytes
        }
        Err(failure) => {
            assert!(!is_answered, "{failure:?}");
            assert_eq!((failure.kind, failure.upstream_status), (AttemptFailureKind::ConnectionLost, None));
            failure.sent_bytes
        }
    };
    // A repeated request counts once, like its hold.
    assert_eq!((counted_bytes, sent.get()), (sent_once, sent_once));
    assert_eq!((counted.load(Ordering::SeqCst), upstream.seen()), (requests, connections));
}

#[rstest]
#[case(&[Close, Answer])]
#[case(&[Reset, Answer])]
#[tokio::test]
async fn request_on_new_connection_is_not_repeated_once_it_was_written(#[case] reactions: &'static [Reaction]) {
    let (upstream, counted) = reacting(reactions).await;
    let failure = decide(&provider(&upstream)).await.unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectionLost);
    assert!(failure.sent_bytes > 0, "the provider may have processed it");
    assert_eq!(counted.load(Ordering::SeqCst), 1);
}

/// A pool full of connections that ended at the same time costs one repeat, and not one for each of them.
#[tokio::test]
async fn repeated_request_uses_a_new_connection() {
    let all = Arc::new(tokio::sync::Barrier::new(3));
    let connections = Arc::new(AtomicUsize::new(0));
    let upstream = Upstream::start(move |mut socket| {
        let (all, number) = (Arc::clone(&all), connections.fetch_add(1, Ordering::SeqCst));
        async move {
            read_request(&mut socket).await.unwrap();
            if number < 3 {
                all.wait().await;
            }
            socket.write_all(ok(ANSWER).as_bytes()).await.unwrap();
            if read_request(&mut socket).await.is_some() {
                socket.set_zero_linger().unwrap();
            }
        }
    })
    .await;
    let provider = provider(&upstream);
    let (a, b, c) = tokio::join!(decide(&provider), decide(&provider), decide(&provider));
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    decide(&provider).await.unwrap();
    assert_eq!(upstream.seen(), 4);
}

/// The frames of HTTP/2 that the scripts send: RFC 9113, section 6.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn settings_frame() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// `:status: 200` of the static table, and the body.
fn answer_frames(stream: u32) -> Vec<u8> {
    [frame(1, 4, stream, &[0x88]), frame(0, 1, stream, ANSWER.as_bytes())].concat()
}

fn reset_frame(stream: u32, code: u32) -> Vec<u8> {
    frame(3, 0, stream, &code.to_be_bytes())
}

fn goaway_frame(last_stream: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last_stream.to_be_bytes(), 0_u32.to_be_bytes()].concat())
}

const REFUSED_STREAM: u32 = 7;

/// Reads up to the end of a request and returns its stream; `None` at the end of the connection.
async fn read_stream(socket: &mut TcpStream) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        if kind == 4 && flags & 1 == 0 {
            socket.write_all(&frame(4, 1, 0, &[])).await.ok()?;
        }
        if kind <= 1 && flags & 1 == 1 {
            return Some(stream);
        }
    }
}

/// Reacts to the requests of all connections with these frames, in this order, and answers further ones.
async fn framing(reactions: Vec<fn(u32) -> Vec<u8>>) -> (Upstream, Arc<AtomicUsize>) {
    let (requests, reactions) = (Arc::new(AtomicUsize::new(0)), Arc::new(reactions));
    let counted = Arc::clone(&requests);
    let upstream = Upstream::start(move |mut socket| {
        let (counted, reactions) = (Arc::clone(&counted), Arc::clone(&reactions));
        async move {
            let mut preface = [0; 24];
            socket.read_exact(&mut preface).await.unwrap();
            socket.write_all(&settings_frame()).await.unwrap();
            while let Some(stream) = read_stream(&mut socket).await {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let frames = reactions.get(number).map_or_else(|| answer_frames(stream), |react| react(stream));
                if frames.is_empty() {
                    return;
                }
                let _ = socket.write_all(&frames).await;
            }
        }
    })
    .await;
    (upstream, requests)
}

fn http2() -> HttpClientSettings {
    HttpClientSettings { http2: Http2::PriorKnowledge, ..support::settings() }
}

/// The requests on a new connection that the provider certainly did not process, and those that it may have processed.
#[rstest]
#[case::refused(|stream| reset_frame(stream, REFUSED_STREAM), true)]
#[case::goaway_below(|stream| goaway_frame(stream - 1), true)]
#[case::goaway_then_end(|stream| [goaway_frame(stream), frame(6, 0, 0, &[0; 7])].concat(), false)]
#[case::internal_error(|stream| reset_frame(stream, 2), false)]
#[case::cancel(|stream| reset_frame(stream, 8), false)]
#[case::http_1_1_required(|stream| reset_frame(stream, 13), false)]
#[case::end(|_| Vec::new(), false)]
#[case::refused_after_head(|stream| [frame(1, 4, stream, &[0x88]), reset_frame(stream, REFUSED_STREAM)].concat(), false)]
#[tokio::test]
async fn http2_request_is_repeated_if_it_was_not_processed(
    #[case] reaction: fn(u32) -> Vec<u8>,
    #[case] is_repeated: bool,
) {
    let (upstream, counted) = framing(vec![reaction]).await;
    let provider = provider_with(&http2(), &upstream.base_url());
    let result = timeout(AMPLE, decide(&provider)).await.unwrap();
    assert_eq!(result.is_ok(), is_repeated, "{result:?}");
    assert_eq!(counted.load(Ordering::SeqCst), 1 + usize::from(is_repeated));
    match result {
        Ok(_) => assert_eq!(upstream.seen(), 2, "the repeat uses a new connection"),
        Err(failure) => assert!(failure.sent_bytes > 0, "{failure:?}"),
    }
}

/// Like a connection of HTTP/1.1: the second request is lost without a byte of an answer.
#[tokio::test]
async fn http2_request_on_kept_connection_is_repeated_when_the_connection_ends() {
    let (upstream, counted) = framing(vec![answer_frames, |_| Vec::new()]).await;
    let provider = provider_with(&http2(), &upstream.base_url());
    for _ in 0..2 {
        timeout(AMPLE, decide(&provider)).await.unwrap().unwrap();
    }
    assert_eq!((counted.load(Ordering::SeqCst), upstream.seen()), (3, 2));
}

#[tokio::test]
async fn refused_request_whose_repeat_is_refused_counts_no_byte() {
    let refuse = |stream| reset_frame(stream, REFUSED_STREAM);
    let (upstream, counted) = framing(vec![refuse, refuse]).await;
    let provider = provider_with(&http2(), &upstream.base_url());
    let call = support::call();
    let sent = call.sent.clone();
    let failure = timeout(AMPLE, provider.decide(call)).await.unwrap().unwrap_err();
    assert_eq!(failure.kind, AttemptFailureKind::ConnectionLost);
    assert_eq!((failure.sent_bytes, sent.get()), (0, 0), "nothing is billed");
    assert_eq!(counted.load(Ordering::SeqCst), 2, "never two repeats");
}

/// The first tunnel ends at once, before the request.
#[tokio::test]
async fn connection_that_ends_before_the_request_is_replaced_once() {
    for failing in [1, 2] {
        let (upstream, counted) = framing(Vec::new()).await;
        let target = upstream.address;
        let tunnels = Arc::new(AtomicUsize::new(0));
        let opened = Arc::clone(&tunnels);
        let proxy = Upstream::start(move |mut socket| {
            let number = opened.fetch_add(1, Ordering::SeqCst);
            async move {
                read_request(&mut socket).await.unwrap();
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                if number < failing {
                    socket.shutdown().await.unwrap();
                    return closed(&mut socket).await;
                }
                let mut target = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut socket, &mut target).await;
            }
        })
        .await;
        let http_proxy = Some(format!("http://{}", proxy.address));
        let settings =
            HttpClientSettings { proxy: ProxySettings { http_proxy, ..ProxySettings::default() }, ..http2() };
        let result = timeout(AMPLE, decide(&provider_with(&settings, "http://provider.test/v1"))).await.unwrap();
        assert_eq!(result.is_ok(), failing == 1, "{result:?}");
        assert_eq!((counted.load(Ordering::SeqCst), proxy.seen()), (2 - failing, 2));
        if let Err(failure) = result {
            assert_eq!(failure.sent_bytes, 0, "nothing was sent: {failure:?}");
        }
    }
}
