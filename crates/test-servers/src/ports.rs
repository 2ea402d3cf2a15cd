//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

/// Returns a loopback port that was free a moment ago.
pub(crate) fn free() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
