//! Which models and providers a guardrail lets through.

use super::Guardrail;
use crate::ids::GuardrailId;
use crate::model::CatalogueSnapshot;
use crate::routing::Candidate;

/// A rule that forbids a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the guardrail {guardrail_id} forbids it by {rule}")]
pub struct Forbidden {
    /// The guardrail.
    pub guardrail_id: GuardrailId,
    /// The member of its record, such as `allowed_models`.
    pub rule: &'static str,
}

/// Whether one guardrail lets a candidate through.
pub(crate) fn permits(
    _guardrail: &Guardrail,
    _candidate: &Candidate,
    _catalogue: &CatalogueSnapshot,
) -> Result<(), Forbidden> {
    Ok(())
}
