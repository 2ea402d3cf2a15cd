//! The store of evidence.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{Evidence, EvidenceFilter, Label, LabelMode, LabelOutcome, NewLabel, PresetRequest};
use crate::change::Respond;
use crate::error::StoreError;
use crate::ids::DecisionId;
use crate::repetition::Repetition;

/// A request, and the response to the effects of its labels.
pub type LabelRepetition<'a> = (&'a Repetition, Respond<'a, Vec<LabelOutcome>>);

/// Stores evidence and labels. The fold of a charge adds the evidence in the transaction of its record.
///
/// # Contract
/// - Every method is one transaction.
/// - Versions of a label are numbered from 1 without gaps and never change. Of concurrent labels of one answer the later
///   one is current, and both are kept.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EvidenceRepository: Send + Sync {
    /// Returns up to `limit` rows, newest first by their time, then by id and position, all descending.
    async fn list(&self, filter: &EvidenceFilter, limit: u64) -> Result<Vec<Evidence>, StoreError>;

    /// Returns the presets of the requests that have evidence, in the order of ids. It reads no answers: a request may
    /// have more than a thousand.
    async fn find_presets(&self, ids: &[DecisionId]) -> Result<Vec<PresetRequest>, StoreError>;

    /// Adds labels of an actor, one after the other, and returns their effects in this order. With
    /// [`LabelMode::AllOrNone`] a rejected label means that none is added; the effects are as if the others were. Unless
    /// none is added, the request is stored as [`crate::repetition::IdempotentRequests`] has it.
    async fn label<'a>(
        &self,
        labels: &[NewLabel],
        mode: LabelMode,
        by: &str,
        repetition: Option<LabelRepetition<'a>>,
    ) -> Result<Vec<LabelOutcome>, StoreError>;

    /// Returns versions of the label of an answer from the number `newest` down, newest first.
    async fn versions(&self, id: &DecisionId, position: u32, newest: u32, limit: u64)
    -> Result<Vec<Label>, StoreError>;

    /// Removes up to `limit` rows of requests that began before a time, with their labels, and returns their number.
    async fn prune(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, StoreError>;
}
