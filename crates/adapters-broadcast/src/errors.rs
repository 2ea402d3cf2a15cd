//! Errors of settings and connections.

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The user agent is no valid header value.
    #[error("the user agent is not a valid header value")]
    UserAgent,
}

/// An address that must not be dialled.
#[derive(Debug, thiserror::Error)]
#[error("the destination address is not public")]
pub(crate) struct ForbiddenAddress;

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("the destination host cannot be resolved")]
pub(crate) struct UnresolvedName;
