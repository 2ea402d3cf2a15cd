//! Stored evidence, and its labels.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::ids::{DecisionId, PresetId, WorkspaceId};
use crate::json::Json;
use crate::money::Usd;
use crate::usage::{AnswerEvidence, PresetReference};

named_enum! {
    /// The source of a label.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LabelSource {
        /// A person.
        Human = "human",
        /// A dataset with known answers.
        Reference = "reference",
        /// Another system, such as a refund that was booked.
        System = "system",
    }
}

/// The right decision of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The number of the version, from 1.
    pub version: u32,
    /// The value, see [`crate::statistics::Decision::to_label`].
    pub value: Json,
    /// The source.
    pub source: LabelSource,
    /// The actor who sent it.
    pub created_by: String,
    /// The time of its arrival.
    pub created_at: DateTime<Utc>,
}

impl Label {
    /// The most versions of the label of one answer.
    pub const MAX_VERSIONS: u32 = 100;

    /// Estimates its size.
    pub fn stored_bytes(&self) -> u64 {
        const LABEL: usize = 128;
        (LABEL + self.value.text().len()) as u64
    }
}

/// The stored evidence of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The id of the Decisions request.
    pub id: DecisionId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The version of the preset.
    pub preset: PresetReference,
    /// The answer.
    pub answer: AnswerEvidence,
    /// The start of the request.
    pub created_at: DateTime<Utc>,
    /// The current label.
    pub label: Option<Label>,
    /// The cost of the whole request; `None` if its record was removed.
    pub cost: Option<Usd>,
    /// The latency of the whole request; `None` if its record was removed.
    pub latency: Option<Duration>,
}

/// A Decisions request that has evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetRequest {
    /// The id of the Decisions request.
    pub id: DecisionId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The version of the preset.
    pub preset: PresetReference,
}

/// A checked label for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLabel {
    /// The id of the Decisions request.
    pub id: DecisionId,
    /// The index of the question.
    pub position: u32,
    /// The value.
    pub value: Json,
    /// The source.
    pub source: LabelSource,
}

impl NewLabel {
    /// The most labels of a call.
    pub const MAX_IN_A_CALL: usize = 1_000;
}

/// The labels of a call that are stored if one of them cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelMode {
    /// All others.
    Each,
    /// None.
    AllOrNone,
}

/// The effect of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOutcome {
    /// It is the new version.
    Changed,
    /// The current version has the same value and source.
    Unchanged,
    /// The answer has no evidence.
    Unknown,
    /// The answer has the most versions.
    TooMany,
}

impl LabelOutcome {
    /// Returns true if the label cannot be stored.
    pub const fn is_rejected(self) -> bool {
        matches!(self, Self::Unknown | Self::TooMany)
    }
}

/// The place of evidence in a list: its time, id and position.
pub type EvidencePosition = (DateTime<Utc>, DecisionId, u32);

/// A filter for evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceFilter {
    /// The preset.
    pub preset: PresetId,
    /// Only this version.
    pub version: Option<u32>,
    /// Only the question with this name.
    pub question: Option<String>,
    /// Only answers of this model.
    pub model: Option<String>,
    /// Only requests that began at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Only requests that began before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only answers with a label, or without one.
    pub is_labelled: Option<bool>,
    /// Only evidence after this place, for the next page.
    pub after: Option<EvidencePosition>,
}

impl EvidenceFilter {
    /// Matches all evidence of a preset.
    pub const fn of_preset(preset: PresetId) -> Self {
        Self {
            preset,
            version: None,
            question: None,
            model: None,
            since: None,
            until: None,
            is_labelled: None,
            after: None,
        }
    }
}

impl Evidence {
    /// Estimates the size of the row.
    pub fn stored_bytes(&self) -> u64 {
        self.answer.stored_bytes() + self.label.as_ref().map_or(0, Label::stored_bytes)
    }

    /// Returns its place in a list.
    pub fn place(&self) -> EvidencePosition {
        (self.created_at, self.id.clone(), self.answer.position)
    }
}
