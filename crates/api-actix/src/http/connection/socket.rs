//! The byte stream of a connection.

use std::mem::MaybeUninit;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The read and write halves of a connection.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Returns true if the system holds unread bytes. The runtime may not know of them yet.
    fn has_input(&self) -> bool;
}

impl Socket for TcpStream {
    fn has_input(&self) -> bool {
        SockRef::from(self).peek(&mut [MaybeUninit::uninit()]).is_ok_and(|bytes| bytes > 0)
    }
}

#[cfg(test)]
impl Socket for tokio::io::DuplexStream {
    /// Always false: reads of this stream see all bytes at once.
    fn has_input(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn has_input_sees_bytes_and_not_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
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
