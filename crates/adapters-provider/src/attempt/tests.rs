//! Tests of attempts.

use super::*;
use async_trait::async_trait;
use domain::decision::NeverDisconnects;
use std::future::{pending, ready};
use std::io::Write;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

fn after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

struct Gone;

#[async_trait]
impl ClientConnection for Gone {
    async fn disconnected(&self) {}
}

#[tokio::test]
async fn run_with_deadline_stops_when_client_disconnects() {
    let end = run_with_deadline(after(Duration::from_secs(9)), &Gone, ready(Ok(1))).await;
    assert_eq!(end.unwrap_err().kind, AttemptFailureKind::ClientDisconnected);
}

#[tokio::test]
async fn run_with_deadline_stops_at_timeout() {
    let end = run_with_deadline::<()>(after(Duration::from_millis(5)), &NeverDisconnects, pending()).await;
    assert_eq!(end.unwrap_err().kind, AttemptFailureKind::TimedOut);
}

#[tokio::test]
async fn run_with_deadline_returns_finished_work_with_zero_timeout() {
    assert_eq!(run_with_deadline(after(Duration::ZERO), &NeverDisconnects, ready(Ok(1))).await.unwrap(), 1);
}

/// Reads a byte in a separate task, as connections do, and passes it on.
async fn read_by_a_task(mut socket: TcpStream) -> Result<u8, AttemptFailure> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let byte = socket.read_u8().await;
        sender.send(byte).ok();
    });
    receiver.await.unwrap().map_err(|error| AttemptFailure::new(AttemptFailureKind::InvalidResponse, error.to_string()))
}

/// A thread that is blocked past the deadline finds both the timer and the socket ready.
#[tokio::test]
async fn run_with_deadline_reads_answer_that_arrived_during_pause() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let mut provider = listener.accept().unwrap().0;
    let answer = tokio::spawn(async move {
        run_with_deadline(after(Duration::from_millis(200)), &NeverDisconnects, read_by_a_task(socket)).await
    });
    // Starts the deadline and the read.
    tokio::time::sleep(Duration::from_millis(5)).await;
    provider.write_all(&[7]).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(answer.await.unwrap().unwrap(), 7);
}

/// No data arrives, so the deadline is declared soon after the pause.
#[tokio::test]
async fn run_with_deadline_times_out_after_pause_without_answer() {
    let deadline = after(Duration::from_millis(50));
    let waiting = tokio::spawn(run_with_deadline::<()>(deadline, &NeverDisconnects, pending()));
    tokio::time::sleep(Duration::from_millis(5)).await;
    std::thread::sleep(Duration::from_millis(300));
    let end = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    assert_eq!(end.unwrap_err().kind, AttemptFailureKind::TimedOut);
}
