//! A change of a record, as management use cases receive it: its caller, its precondition and its repetition.

use crate::audit::{AuditDraft, AuditHash};
use crate::authority::Authority;
use crate::error::ErrorKind;
use crate::repetition::{Repetition, StoredRepetition, StoredResponse};
use crate::version::{IfMatch, Version};

/// The most attempts of a change whose record others change at the same time. In each round at least one change takes
/// effect, so that as many changes at once all do.
pub(crate) const MAX_ATTEMPTS: usize = 64;

/// Renders the response to a result, before the change is committed.
pub type Respond<'a, R> = &'a (dyn Fn(&R) -> StoredResponse + Send + Sync);

/// The record has another version than the caller accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The resource has another version than If-Match names. Read it again and repeat the change.")]
pub struct PreconditionFailed;

impl PreconditionFailed {
    /// Returns the meaning of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::PreconditionFailed
    }
}

/// A change of a record. `R` is the result of the use case.
///
/// A use case that reads a record and then replaces it calls [`Change::check_version`] for the state that it read, and
/// replaces only that state: check and change are one transaction. Every audit entry goes through [`Change::audited`].
pub struct Change<'a, R> {
    by: &'a Authority,
    if_match: Option<IfMatch>,
    repetition: Option<(Repetition, Respond<'a, R>)>,
}

impl<'a, R> Change<'a, R> {
    /// Creates a change of any version that is not stored as a request.
    pub fn plain(by: &'a Authority) -> Self {
        Self { by, if_match: None, repetition: None }
    }

    /// Creates a change of the accepted versions.
    pub fn conditional(by: &'a Authority, if_match: Option<IfMatch>) -> Self {
        Self { if_match, ..Self::plain(by) }
    }

    /// Stores the request and its response with the change.
    #[must_use]
    pub fn stored_as(self, request: Repetition, respond: Respond<'a, R>) -> Self {
        Self { repetition: Some((request, respond)), ..self }
    }

    /// Returns the caller.
    pub fn by(&self) -> &'a Authority {
        self.by
    }

    /// Returns true if the caller names the versions that it accepts.
    pub fn is_conditional(&self) -> bool {
        self.if_match.is_some()
    }

    /// Checks the version of the state that the change replaces; `None` is that of a record that does not exist.
    ///
    /// # Errors
    /// The caller accepts other versions only.
    pub fn check_version(&self, current: impl Into<Option<Version>>) -> Result<(), PreconditionFailed> {
        let current = current.into();
        let accepts = |accepted: &IfMatch| current.is_some_and(|version| accepted.accepts(version));
        let is_accepted = self.if_match.as_ref().is_none_or(accepts);
        if is_accepted { Ok(()) } else { Err(PreconditionFailed) }
    }

    /// Returns the request that is stored with the change, and the response to its result.
    pub fn repetition(&self) -> Option<(&Repetition, Respond<'a, R>)> {
        self.repetition.as_ref().map(|(request, respond)| (request, *respond))
    }

    /// Returns the audit entry with the request and the response to its result, which the repository stores with it.
    #[must_use]
    pub fn audited(&self, entry: AuditDraft, result: &R) -> AuditDraft {
        let stored = |(request, respond): &(Repetition, Respond<'a, R>)| StoredRepetition {
            request: request.clone(),
            response: respond(result),
        };
        AuditDraft { repetition: self.repetition.as_ref().map(stored), ..entry }
    }
}

impl From<AuditHash> for Version {
    fn from(hash: AuditHash) -> Self {
        Self::from_digest(hash.0)
    }
}
