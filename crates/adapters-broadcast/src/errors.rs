//! Errors of settings and connections.

/// Invalid settings.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The user agent is no valid header value.
    #[error("the user agent cannot stand in a header")]
    UserAgent,
}

/// An address that must not be dialled.
#[derive(Debug, thiserror::Error)]
#[error("the address of the target is not public")]
pub(crate) struct Forbidden;

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("the name of the target cannot be resolved")]
pub(crate) struct Unresolved;
