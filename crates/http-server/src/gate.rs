//! Stops new connections before a listening socket is closed.

use std::io;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;

use socket2::Socket;

use super::socket::ListenSocket;

/// A second handle of a listening socket.
///
/// Closing a socket resets the connections in its accept queue, including their requests. Therefore new connections are
/// blocked first, pending ones are accepted, and then the socket is closed.
#[derive(Debug)]
pub(super) struct Gate {
    socket: Socket,
    /// The path of a Unix socket.
    path: Option<PathBuf>,
}

impl Gate {
    pub(super) fn new(listener: &ListenSocket) -> io::Result<Self> {
        match listener {
            ListenSocket::Tcp(listener) => Ok(Self { socket: listener.try_clone()?.into(), path: None }),
            #[cfg(unix)]
            ListenSocket::Unix(listener) => {
                let path = listener.local_addr()?.as_pathname().map(Path::to_owned);
                Ok(Self { socket: listener.try_clone()?.into(), path })
            }
        }
    }

    /// Makes the system ignore connection attempts. Clients retry after a second and find a closed port; handshakes in
    /// progress complete. Does nothing if the system does not support it. A Unix socket loses its path.
    pub(super) fn shut(&self) {
        let shut = match &self.path {
            Some(path) => std::fs::remove_file(path),
            None => ignore_new_connections(&self.socket),
        };
        if let Err(error) = shut {
            tracing::debug!(%error, "listen queue not closed before the listener");
        }
    }
}

/// Drops only the first segment of a handshake: SYN without ACK in byte 13 of the TCP header.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn ignore_new_connections(socket: &Socket) -> io::Result<()> {
    use socket2::SockFilter;
    const LOAD_BYTE: u16 = 0x30;
    const AND: u16 = 0x54;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    socket.attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn ignore_new_connections(_: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
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
}
