//! The byte stream of a connection.

use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
#[cfg(unix)]
use std::os::unix::net::UnixListener;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A socket that listens.
#[derive(Debug)]
pub enum ListenSocket {
    /// From [`bind_tcp`](crate::bind_tcp).
    Tcp(TcpListener),
    /// With a path, whose folder decides who may connect. A stop removes the path.
    #[cfg(unix)]
    Unix(UnixListener),
}

/// The user and the process at the other end of a Unix connection, when it was opened; in the extensions of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The id of the user.
    pub user: u32,
    /// The id of the process, where the system tells it.
    pub process: Option<u32>,
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Address(Option<SocketAddr>),
    #[cfg(unix)]
    Credentials(Option<PeerCredentials>),
}

impl Peer {
    /// Returns the address; `None` for a Unix socket.
    pub(super) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => address,
            #[cfg(unix)]
            Self::Credentials(_) => None,
        }
    }
}

/// The read and write halves of a connection.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Returns true if the system holds unread bytes. The runtime may not know of them yet.
    fn has_input(&self) -> bool;

    /// Returns the other end.
    fn peer(&self) -> Peer;
}

impl Socket for TcpStream {
    fn has_input(&self) -> bool {
        SockRef::from(self).peek(&mut [MaybeUninit::uninit()]).is_ok_and(|bytes| bytes > 0)
    }

    fn peer(&self) -> Peer {
        Peer::Address(self.peer_addr().ok())
    }
}

#[cfg(unix)]
impl Socket for UnixStream {
    fn has_input(&self) -> bool {
        SockRef::from(self).peek(&mut [MaybeUninit::uninit()]).is_ok_and(|bytes| bytes > 0)
    }

    fn peer(&self) -> Peer {
        let found = self.peer_cred().ok().map(|peer| PeerCredentials {
            user: peer.uid(),
            process: peer.pid().and_then(|process| process.try_into().ok()),
        });
        Peer::Credentials(found)
    }
}

#[cfg(test)]
impl Socket for tokio::io::DuplexStream {
    /// Always false: reads of this stream see all bytes at once.
    fn has_input(&self) -> bool {
        false
    }

    fn peer(&self) -> Peer {
        Peer::Address(None)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn has_input_sees_bytes_and_not_the_end() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        assert!(!server.has_input());
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        assert!(server.has_input());
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        drop(client);
        server.readable().await.unwrap();
        assert!(!server.has_input());
    }
}
