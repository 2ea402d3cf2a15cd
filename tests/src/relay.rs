//! A relay in front of a server, which can be cut or frozen like a network.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of the network between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Bytes pass.
    Up,
    /// Connections end, and new ones end at once.
    Cut,
    /// No byte passes, and no connection ends.
    Frozen,
}

/// A relay on a free loopback port.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    network: watch::Sender<Network>,
    server: watch::Sender<SocketAddr>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Relay {
    /// Starts a relay to a server.
    pub async fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let (network, state) = watch::channel(Network::Up);
        let (server, target) = watch::channel(server);
        #[expect(clippy::disallowed_methods, reason = "the relay ends with its test")]
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *target.borrow();
                tokio::spawn(relay(client, server, state.clone()));
            }
        });
        Ok(Self { address, network, server, accepting })
    }

    /// Returns the address of the relay.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the network.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// Sends later connections to another server. The others stay; cut the network before to end them.
    pub fn redirect(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Relays a connection until one side ends it or the network is cut.
async fn relay(mut client: TcpStream, server: SocketAddr, mut network: watch::Receiver<Network>) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    // A relay that waits for acknowledgements would add 40 ms to what its ends write apart.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    loop {
        let state = *network.borrow_and_update();
        tokio::select! {
            // Cancelled between two reads or within a write: a frozen connection may lose bytes, as it may when a
            // network comes back, and its client then ends it.
            _ = copy_bidirectional(&mut client, &mut server), if state == Network::Up => return,
            changed = network.changed(), if state != Network::Cut => {
                if changed.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}
