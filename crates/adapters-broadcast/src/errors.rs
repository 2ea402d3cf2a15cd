//! What is wrong with settings, and why a connection was not made.

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BroadcastError {
    /// No version of TLS can be spoken.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The user agent cannot stand in a header.
    #[error("the user agent cannot stand in a header")]
    UserAgent,
}

/// A target that must not be dialled.
#[derive(Debug, thiserror::Error)]
#[error("the address of the target is not public")]
pub(crate) struct Forbidden;

/// A name that has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name of the target cannot be resolved")]
pub(crate) struct Unresolved;
