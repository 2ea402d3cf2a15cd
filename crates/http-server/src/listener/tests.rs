//! Tests of listeners.

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_service::IntoServiceFactory;
use actix_web::{App, HttpMessage as _, HttpResponse, web};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::settings::Preemption;
use crate::socket::PeerCredentials;

const PIECE: usize = 64 * 1024;

#[tokio::test]
async fn unread_response_is_produced_up_to_one_mebibyte() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let settings = ConnectionSettings::default();
    let socket = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &settings).unwrap().listen().unwrap();
    let local_addr = socket.local_addr().unwrap();
    let listener = Listener {
        socket: ListenSocket::Tcp(socket),
        workers: 1,
        settings,
        connections: Connections::new(1, Preemption::Idle),
        reject: Arc::new(|_, _| HttpResponse::BadRequest().finish()),
    };
    let bound = listener.bind(move || {
        let counted = Arc::clone(&counted);
        let serve = move || {
            let counted = Arc::clone(&counted);
            let piece = move |_| {
                counted.fetch_add(PIECE, Ordering::SeqCst);
                Ok::<_, actix_web::Error>(Bytes::from(vec![b'x'; PIECE]))
            };
            async move { HttpResponse::Ok().streaming(stream::iter(0..1_000).map(piece)) }
        };
        App::new().default_service(web::to(serve)).into_factory()
    });
    let BoundServer { server, .. } = bound.unwrap();
    let tasks = TaskTracker::new();
    let (handle, running) = (server.handle(), tasks.spawn(server));
    let client = TcpSocket::new_v4().unwrap();
    client.set_recv_buffer_size(64 * 1024).unwrap();
    let mut client = client.connect(local_addr).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut before = 0;
    let stalled_at = loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = made.load(Ordering::SeqCst);
        if now > 0 && now == before {
            break now;
        }
        before = now;
    };
    // The client's receive buffer holds part of the response.
    assert!(stalled_at <= (1 << 20) + 4 * PIECE, "{stalled_at}");
    handle.stop(false).await;
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn unix_socket_names_its_peer_and_disappears_with_the_stop() {
    let folder = std::env::temp_dir().join(format!("http-server-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let listener = Listener {
        socket: ListenSocket::Unix(UnixListener::bind(&path).unwrap()),
        workers: 1,
        settings: ConnectionSettings::default(),
        connections: Connections::new(4, Preemption::Idle),
        reject: Arc::new(|_, _| HttpResponse::BadRequest().finish()),
    };
    let bound = listener.bind(|| {
        let serve = |request: actix_web::HttpRequest| {
            let peer = request.extensions().get::<PeerCredentials>().and_then(|peer| peer.process);
            async move { HttpResponse::Ok().body(format!("{peer:?}")) }
        };
        App::new().default_service(web::to(serve)).into_factory()
    });
    let settings = StopSettings {
        drain_period: Duration::ZERO,
        timeout: Duration::from_secs(10),
        stopping: CancellationToken::new(),
    };
    let (running, stopper) = bound.unwrap().run(settings);
    let running = TaskTracker::new().spawn(running);
    let mut client = tokio::net::UnixStream::connect(&path).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut said = String::new();
    while !said.ends_with(')') {
        said.push(char::from(client.read_u8().await.unwrap()));
    }
    assert!(said.ends_with(&format!("{:?}", Some(std::process::id()))), "{said}");
    stopper.close().await;
    running.await.unwrap().unwrap();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the idle connection is closed");
    assert!(!path.exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn accepted_sockets_have_a_bounded_send_buffer_and_the_write_timeout() {
    let settings = ConnectionSettings {
        send_buffer_bytes: 64 * 1024,
        write_timeout: Duration::from_secs(7),
        ..ConnectionSettings::default()
    };
    for (settings, most) in [(settings, 128 * 1024), (ConnectionSettings::default(), 1024 * 1024)] {
        let listener = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0)), &settings).unwrap().listen().unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let socket = SockRef::from(&accepted);
        let bytes = socket.send_buffer_size().unwrap();
        assert!((64 * 1024..=most).contains(&bytes), "{bytes}");
        assert!(socket.tcp_nodelay().unwrap());
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(settings.write_timeout));
    }
}
