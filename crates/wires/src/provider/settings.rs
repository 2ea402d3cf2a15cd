//! Settings of a provider that its wire reads, and their defaults.

/// The path and the header that a provider has unless its configuration says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// The path below the base URL.
    pub path: &'static str,
    /// The header that carries the key.
    pub auth_header: &'static str,
    /// The scheme before the key; empty is none.
    pub auth_scheme: &'static str,
}

/// The location of the model's name in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelLocation {
    /// In the body.
    #[default]
    Body,
    /// In the path; the body has no `model`.
    Path,
    /// The full name in the path, and its last segment in the body.
    Both,
}

impl ModelLocation {
    /// Returns the value of the body's member `model`; `None` to omit the member.
    pub fn in_body(self, upstream_model: &str) -> Option<&str> {
        match self {
            Self::Body => Some(upstream_model),
            Self::Path => None,
            Self::Both => Some(upstream_model.rsplit('/').next().unwrap_or(upstream_model)),
        }
    }
}
