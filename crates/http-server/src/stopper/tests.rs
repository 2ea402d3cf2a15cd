//! Tests of the stop of a server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::*;

#[test]
fn shut_gate_blocks_new_connections_and_keeps_pending_ones() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let address = listener.local_addr().unwrap();
        let mut waiting = TcpStream::connect(address).unwrap();
        let listener = ListenSocket::Tcp(listener);
        Gate::new(&listener).unwrap().shut();
        let ListenSocket::Tcp(listener) = listener else { continue };
        let late = TcpStream::connect_timeout(&address, Duration::from_millis(300));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        waiting.write_all(b"request").unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let mut read = [0; 7];
        accepted.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"request");
        drop(listener);
        let refused = TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
