//! Errors of authority.

use super::{ManagementScope, Right};
use crate::error::ErrorKind;

/// The scope of a management key names no workspace, or too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a management key has all workspaces, or 1 to {}", ManagementScope::MAX_WORKSPACES)]
pub struct InvalidManagementScope;

/// The caller lacks a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("This management key may not perform this operation; it needs: {}", needs.as_str())]
pub struct Restricted {
    /// The missing right.
    pub needs: Right,
}

impl Restricted {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Forbidden
    }
}
